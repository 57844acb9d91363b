#!/usr/bin/env python3
"""Puts the real output of commands into the documentation.

A line `<!-- output of: COMMAND -->` is followed by a fenced block, which becomes what COMMAND
prints (a shell line, run in the repository with build/bin first on PATH). The pictures in
PICTURES are files of their own.

    update-docs.py            rewrites the blocks that changed
    update-docs.py --check    names them instead, exit code 1 where there is one
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = {"docs/dualpipe-8x20.svg": "dualpipe-opt examples/dualpipe.pipe --ranks=8 --microbatches=20 --emit=svg"}
BLOCK = re.compile(r"(<!-- output of: (?P<command>.+?) -->\n```\w*\n)(?P<text>.*?)(?P<end>^```$)", re.S | re.M)


def output(command):
    env = {**os.environ, "PATH": f"{ROOT / 'build' / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    run = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, env=env,
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"update-docs.py: '{command}' failed:\n{run.stderr}")
    return "".join(line.rstrip() + "\n" for line in run.stdout.splitlines())


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    blocks = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        def renew(match):
            nonlocal blocks
            blocks += 1
            text = output(match["command"])
            if text != match["text"]:
                stale.append(f"{page.relative_to(ROOT)}: {match['command']}")
            return match[1] + text + match["end"]

        old = page.read_text()
        new = BLOCK.sub(renew, old)
        if new != old and not check:
            page.write_text(new)
    for name, command in PICTURES.items():
        text = output(command)
        picture = ROOT / name
        if not picture.exists() or picture.read_text() != text:
            stale.append(f"{name}: {command}")
            if not check:
                picture.write_text(text)
    for name in stale:
        print(("stale: " if check else "updated: ") + name)
    if not blocks:
        sys.exit("update-docs.py: no page has a block of output")
    return 1 if check and stale else 0


sys.exit(main())

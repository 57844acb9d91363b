#!/usr/bin/env python3
"""Checks the tracked sources: clang-format, and rules of the house that a text search can check.

    check-format.py [--junit-xml FILE]
"""

import argparse
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = ("lib/", "dialects/", "runtime/")


def tracked(*patterns):
    out = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in out.stdout.split("\n") if name and (ROOT / name).exists()]


def find(names, pattern):
    """'file:line: text' of every line that the pattern matches."""
    hits = []
    for name in names:
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            if re.search(pattern, line):
                hits.append(f"{name}:{number}: {line.strip()}")
    return hits


def clang_format(names):
    run = subprocess.run(["clang-format-22", "--dry-run", "-Werror", *names], cwd=ROOT,
                         capture_output=True, text=True)
    findings = [line for line in run.stderr.splitlines() if ": error:" in line]
    if run.returncode and not findings:
        findings = [f"clang-format ended with {run.returncode}: {run.stderr.strip()[:200]}"]
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit-xml")
    args = parser.parse_args()

    sources = tracked("*.cpp", "*.h", "*.cu")
    library = [name for name in sources if name.startswith(LIBRARIES)]
    checks = {
        "clang-format": clang_format(sources + tracked("*.js")),
        "no UnknownLoc in lib": find([n for n in library if n.startswith("lib/")], r"UnknownLoc"),
        "no verification inside assert": find(sources, r"assert\((mlir::)?(succeeded|failed|verify)"),
        "libraries never exit, abort or print": find(
            library, r"\b(std::exit|std::abort|std::terminate|_Exit\(|llvm::errs\(\)|std::cerr|report_fatal_error)"),
        "no file over 800 lines": [
            f"{name}: {lines} lines" for name in tracked("*.cpp", "*.h", "*.cu", "*.td", "*.py", "*.js")
            if (lines := len((ROOT / name).read_text().splitlines())) > 800],
    }

    suite = ET.Element("testsuite", name="format")
    for name, findings in checks.items():
        case = ET.SubElement(suite, "testcase", classname="format", name=name)
        if findings:
            ET.SubElement(case, "failure", message="\n".join(findings[:20]))
            print(f"{name}:", *findings[:20], sep="\n  ")
    if args.junit_xml:
        ET.ElementTree(suite).write(args.junit_xml)
    return 1 if any(checks.values()) else 0


sys.exit(main())

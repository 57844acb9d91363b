"""A line of progress on a terminal, and nothing where there is none."""

import os
import pty
import re
import select
import subprocess

from conftest import BIN, EXAMPLES


def run_on_a_terminal(tool, *arguments):
    """What comes out of standard error, a terminal, and the exit code; output goes to a pipe."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([BIN / tool, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 120)
        assert ready, "nothing for two minutes"
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    return seen.decode(), process.wait()


def waiting(program):
    return [program, "--model=wait", "--set=fwd=40000", "--set=bwd_input=40000", "--set=bwd_weight=40000", "--steps=3"]


def last_line(text):
    """What stays on the terminal: whatever follows the last erasure."""
    return re.split(r"\r\x1b\[K", text)[-1]


def test_a_run_shows_its_steps(tools):
    text, code = run_on_a_terminal("launcher", *waiting(tools.compile("1f1b", 2, 4)))
    assert code == 0
    assert re.search(r"\rrunning, steps, \d of 3 \(\d+ %\), \d+ s\x1b\[K", text), repr(text)
    assert last_line(text) == ""


def test_a_long_compilation_shows_its_ranks(tmp_path):
    text, code = run_on_a_terminal("dualpipe-opt", EXAMPLES / "dualpipe.pipe", "--ranks=128", "--microbatches=1024",
                                   "-o", tmp_path / "x.dpx")
    assert code == 0
    assert re.search(r"\rcompiling ranks, \d+ of 128 \(\d+ %\), \d+ s\x1b\[K", text), repr(text[:2000])
    assert last_line(text) == ""


def test_a_failure_stays_readable(tools):
    text, code = run_on_a_terminal("launcher", *waiting(tools.compile("1f1b", 2, 4)), "--timeout=0.02")
    assert code == 1
    assert "launcher: error: no progress for 0.02 s" in last_line(text)


def test_nothing_is_written_without_a_terminal(tools, tmp_path):
    done = tools.launch(*waiting(tools.compile("1f1b", 2, 4)))
    assert done.returncode == 0
    assert done.stderr == ""
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=64", "--microbatches=512", "-o", tmp_path / "x.dpx")
    assert done.returncode == 0
    assert done.stderr == ""


def test_what_is_over_soon_shows_nothing(tools):
    text, code = run_on_a_terminal("launcher", tools.compile("1f1b", 2, 4), "--model=noop")
    assert code == 0
    assert text == ""

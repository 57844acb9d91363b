"""One suite for everything that runs programs: threads, random orders, GPUs made of software, virtual time.

Every schedule of the library at three sizes. DUALPIPE_SEEDS=N takes N orders each on the devices
that draw one (200 is the whole suite); without it a slice is run.
"""

import os
import re
import subprocess

import pytest
from conftest import BIN, EXAMPLES

CONFORMANCE = BIN / "conformance"
SEEDS = int(os.environ.get("DUALPIPE_SEEDS", "0"))

# Ranks and micro-batches; what the schedules of examples/ allow.
SIZES = {
    "1f1b": [(2, 4), (4, 6), (8, 16)],
    "1f1b-rules": [(2, 4), (3, 5), (6, 8)],
    "chimera": [(2, 4), (4, 6), (6, 12)],
    "dualpipe": [(2, 4), (4, 8), (8, 20)],
    "dualpipev": [(2, 4), (3, 6), (6, 12)],
    "eager-1f1b": [(2, 4), (3, 6), (6, 8)],
    "gpipe": [(2, 3), (3, 4), (6, 8)],
    "hanayo": [(2, 4), (3, 4), (4, 8)],
    "interleaved": [(2, 4), (3, 6), (4, 8)],
    "looped-bfs": [(2, 3), (3, 4), (4, 8)],
    "seq1f1b": [(2, 2), (3, 4), (4, 6)],
    "v-half": [(2, 4), (3, 5), (5, 8)],
    "v-min": [(2, 4), (3, 5), (6, 8)],
    "zb-h1": [(2, 4), (3, 5), (6, 8)],
    "zb-h1-rules": [(2, 4), (4, 5), (5, 8)],
    "zb-h2": [(2, 4), (3, 6), (4, 9)],
    "zbv": [(2, 4), (3, 6), (5, 10)],
}
CASES = [(name, *size) for name, sizes in SIZES.items() for size in sizes]

# Orders in the slice. A device without seeds has one; on the CPU the pauses are drawn.
SLICE = {"cpu": 1, "shuffled": 4, "copies": 4, "nccl": 4, "folded": 2, "sim": 1}
DRAWN = {"shuffled", "copies", "nccl", "folded"}


def test_the_library_is_here():
    assert sorted(SIZES) == sorted(path.stem for path in EXAMPLES.glob("*.pipe"))


def conform(*arguments):
    return subprocess.run([CONFORMANCE, *map(str, arguments)], capture_output=True, text=True, timeout=3600)


@pytest.mark.parametrize("on", SLICE)
@pytest.mark.parametrize("schedule,ranks,microbatches", CASES)
def test_a_program_runs_as_on_one_device(tools, schedule, ranks, microbatches, on):
    program = tools.compile(schedule, ranks, microbatches)
    seeds = SEEDS if SEEDS and on in DRAWN else SLICE[on]
    done = conform(program, f"--on={on}", f"--seeds={seeds}")
    assert done.returncode == 0, done.stdout + done.stderr


# Orders in the slice of runs as graphs, and how many of the sizes.
CAPTURED = {"copies": 3, "nccl": 3, "folded": 2}
CAPTURED_CASES = [(name, *size) for name, sizes in SIZES.items() for size in (sizes if SEEDS else sizes[:2])]


@pytest.mark.parametrize("on", CAPTURED)
@pytest.mark.parametrize("schedule,ranks,microbatches", CAPTURED_CASES)
def test_a_captured_program_runs_as_on_one_device(tools, schedule, ranks, microbatches, on):
    program = tools.compile(schedule, ranks, microbatches)
    done = conform(program, f"--on={on}", "--graph", f"--seeds={SEEDS or CAPTURED[on]}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("on", CAPTURED)
def test_forward_only_captured(tools, on):
    program = tools.compile("dualpipe", 4, 8, "--forward-only")
    done = conform(program, f"--on={on}", "--graph", "--seeds=2")
    assert done.returncode == 0, done.stdout + done.stderr


GROUPED_CASES = [("1f1b", 2, 4), ("dualpipe", 4, 8), ("chimera", 4, 6)]


@pytest.mark.parametrize("on", SLICE)
@pytest.mark.parametrize("schedule,ranks,microbatches", GROUPED_CASES)
def test_transfers_in_groups(tools, schedule, ranks, microbatches, on):
    """The one kind of command that no schedule of the library has."""
    program = tools.compile(schedule, ranks, microbatches)
    seeds = SEEDS if SEEDS and on in DRAWN else SLICE[on]
    for graph in [[], ["--graph"]] if on in CAPTURED else [[]]:
        done = conform(program, f"--on={on}", "--groups", f"--seeds={seeds}", *graph)
        assert done.returncode == 0, done.stdout + done.stderr


def test_only_gpus_capture(tools):
    done = conform(tools.compile("1f1b", 2, 4), "--on=cpu", "--graph")
    assert done.returncode == 1
    assert done.stderr.startswith("usage: conformance")


@pytest.mark.parametrize("on", ["copies", "nccl"])
def test_forward_only(tools, on):
    program = tools.compile("dualpipe", 4, 8, "--forward-only")
    done = conform(program, f"--on={on}", "--seeds=4")
    assert done.returncode == 0, done.stdout + done.stderr


FAULTS = {"a wait is missing", "a record is missing", "group members swapped", "communicators reordered",
          "a slot is too small"}


@pytest.mark.parametrize("schedule,ranks,microbatches", [("1f1b", 2, 4), ("dualpipe", 2, 4), ("zbv", 2, 4)])
def test_planted_faults_are_caught(tools, schedule, ranks, microbatches):
    done = conform(tools.compile(schedule, ranks, microbatches), "--faults")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^(\S.*?) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    assert {row[0] for row in rows} == FAULTS
    assert all(int(row[1]) > 0 and int(row[5]) == 0 for row in rows)

"""`launcher --check` with every schedule of the library, at three sizes each: losses, gradients and
weights bit for bit equal to the same stage calls in sequence."""

import json

import pytest

from conftest import EXAMPLES

MODEL = ["--model=mlp", "--set", "hidden=16", "--set", "seq=4", "--set", "batch=2"]

# Fewer micro-batches than ranks, a few more, several rounds.
SIZES = {
    "1f1b-rules": [(4, 2), (3, 5), (4, 12)],
    "chimera": [(4, 3), (2, 5), (6, 12)],
    "eager-1f1b": [(4, 2), (3, 5), (4, 12)],
    "gpipe": [(4, 2), (3, 5), (4, 8)],
    "hanayo": [(4, 2), (3, 5), (4, 12)],
    "interleaved": [(4, 2), (3, 5), (4, 12)],
    "looped-bfs": [(4, 2), (3, 5), (4, 8)],
    "seq1f1b": [(4, 2), (3, 6), (4, 12)],
    "v-half": [(4, 2), (3, 7), (4, 12)],
    "v-min": [(4, 2), (3, 7), (4, 12)],
    "zb-h1": [(4, 2), (3, 5), (4, 12)],
    "zb-h1-rules": [(4, 2), (3, 5), (4, 12)],
    "zb-h2": [(4, 2), (3, 5), (4, 12)],
    "zbv": [(4, 2), (3, 7), (4, 12)],
}

# Other values of the parameters.
PARAMS = [
    ("chimera", 8, 8, "pairs=2"), ("chimera", 4, 5, "pairs=2"), ("hanayo", 3, 5, "chunks=3"),
    ("interleaved", 2, 5, "chunks=3"), ("looped-bfs", 2, 3, "chunks=4"), ("seq1f1b", 3, 8, "slices=4"),
]

# test_training_matches_one_device.py has these at more sizes.
ELSEWHERE = {"1f1b", "dualpipe", "dualpipev"}


def check(tools, schedule, ranks, count, *arguments):
    program = tools.compile(schedule, ranks, count, *arguments)
    done = tools.launch(program, *MODEL, "--steps=2", "--check", "--json", "--timeout=60")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["check"]["passed"] is True


def test_no_schedule_is_left_out():
    assert {path.stem for path in EXAMPLES.glob("*.pipe")} == set(SIZES) | ELSEWHERE


@pytest.mark.parametrize("schedule,ranks,count", [(s, *size) for s in SIZES for size in SIZES[s]])
def test_check(tools, schedule, ranks, count):
    check(tools, schedule, ranks, count)


@pytest.mark.parametrize("schedule,ranks,count,param", PARAMS)
def test_check_with_a_parameter(tools, schedule, ranks, count, param):
    check(tools, schedule, ranks, count, f"--param={param}")


@pytest.mark.parametrize("schedule", SIZES)
def test_same_input_same_bytes(tools, tmp_path, schedule):
    outputs = []
    for name in ("a.dpx", "b.dpx"):
        done = tools.opt(EXAMPLES / f"{schedule}.pipe", "--ranks=4", "--microbatches=12", "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        outputs.append((tmp_path / name).read_bytes())
    assert outputs[0] == outputs[1]


def test_an_illegal_size_names_the_nearest_legal_ones(tools):
    done = tools.opt(EXAMPLES / "chimera.pipe", "--ranks=6", "--microbatches=8", "--param=pairs=2",
                     "--emit=torch-csv")
    assert done.returncode == 1
    assert "schedule 'chimera' needs a multiple of 4 ranks, got 6" in done.stderr
    assert "nearest legal number of ranks: 4 or 8 (with 8 micro-batches)" in done.stderr

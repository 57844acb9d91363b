"""`launcher --check` over schedules and sizes: losses, gradients and weights bit for bit equal to
the same stage calls in sequence, and close to the plain sum over the micro-batches."""

import json

import pytest

MODEL = ["--model=mlp", "--set", "hidden=16", "--set", "seq=4", "--set", "batch=2"]

# (schedule, ranks, smallest legal number of micro-batches)
SIZES = (
    [("dualpipe", p, 2 * p) for p in (2, 4, 6, 8, 12, 16)]
    + [("dualpipev", p, 2 * p) for p in (1, 2, 3, 4, 5, 8)]
    + [("1f1b", p, 1) for p in (1, 2, 4, 8)]
)


def microbatches(schedule, ranks, least):
    """The smallest legal number, two more, four times the ranks; for 1F1B fewer than the ranks too."""
    return sorted({least, least + 2, 4 * ranks} | ({ranks - 1} if schedule == "1f1b" and ranks > 1 else set()))


CASES = [(s, p, m) for s, p, least in SIZES for m in microbatches(s, p, least)]


@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("schedule,ranks,count", CASES)
def test_check(tools, schedule, ranks, count, dtype, steps):
    program = tools.compile(schedule, ranks, count)
    done = tools.launch(program, *MODEL, "--set", f"dtype={dtype}", f"--steps={steps}",
                        "--optimizer=sgd", "--lr=0.05", "--check", "--json", "--timeout=60")
    assert done.returncode == 0, done.stderr + done.stdout
    check = json.loads(done.stdout)["check"]
    assert check["passed"] is True
    assert check["plain_difference"] <= {"f32": 1e-6, "bf16": 1e-6, "f64": 1e-13}[dtype]


@pytest.mark.parametrize("schedule,ranks,count", [("dualpipe", 8, 20), ("dualpipev", 4, 10), ("1f1b", 4, 8)])
def test_random_delays_in_every_stream(tools, schedule, ranks, count):
    program = tools.compile(schedule, ranks, count)
    for seed in range(5):
        done = tools.launch(program, *MODEL, "--check", "--timeout=60", f"--jitter={seed}")
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("schedule,ranks,count", [("dualpipe", 8, 20), ("dualpipev", 4, 10), ("1f1b", 4, 8)])
def test_random_order_of_all_commands(tools, schedule, ranks, count):
    program = tools.compile(schedule, ranks, count)
    for seed in range(5):
        done = tools.launch(program, *MODEL, "--check", "--steps=2", f"--shuffle={seed}")
        assert done.returncode == 0, done.stderr + done.stdout
        assert done.stdout.count("loss ") == 2


def test_one_seed_gives_the_same_bytes(tools):
    program = tools.compile("dualpipe", 4, 8)
    runs = [tools.launch(program, *MODEL, "--steps=3", f"--seed={seed}", "--json")
            for seed in (1, 1, 2)]
    for run in runs:
        assert run.returncode == 0, run.stderr
    first, again, other = (json.loads(run.stdout)["weights_digest"] for run in runs)
    assert first == again
    assert first != other


@pytest.mark.parametrize("schedule,ranks,count", [("dualpipe", 4, 8), ("dualpipev", 2, 4), ("1f1b", 3, 5)])
def test_forward_only(tools, schedule, ranks, count):
    program = tools.compile(schedule, ranks, count, "--forward-only")
    done = tools.launch(program, *MODEL, "--check", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["check"]["passed"] is True

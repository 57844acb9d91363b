"""The built-in models on GPUs made of software, through the launcher: `--check` with every schedule of
the library at three sizes, every type of numbers, and several orders of the streams; and the same
losses as on the CPU. Never run on a GPU.
"""

import json

import pytest
from conftest import BIN, EXAMPLES
from test_library import ELSEWHERE, SIZES

pytestmark = pytest.mark.usefixtures("kernels")

SOFT = BIN.parent / "softcuda"
SMALL = ["--set", "hidden=8", "--set", "seq=3", "--set", "batch=2"]
ALL_SIZES = {**SIZES, "1f1b": [(4, 2), (3, 5), (4, 12)], "dualpipe": [(2, 4), (4, 10), (6, 12)],
             "dualpipev": [(2, 4), (3, 6), (4, 10)]}
CASES = [(schedule, *size) for schedule in ALL_SIZES for size in ALL_SIZES[schedule]]


def launch(tools, tmp_path, program, *arguments, seed=0):
    """The launcher's JSON. Nothing undefined may have happened."""
    report = tmp_path / "report"
    done = tools.launch(program, "--backend=cuda", *arguments, "--json", "--timeout=60",
                        env={"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed={seed}",
                             "DUALPIPE_SOFTGPU_REPORT": str(report)})
    assert done.returncode == 0, done.stderr + done.stdout
    lines = report.read_text().splitlines()
    assert lines[1:] == []
    assert int(lines[0].split()[0]) > 0
    result = json.loads(done.stdout)
    assert result["device"].startswith("cuda")
    return result


def test_no_schedule_is_left_out():
    assert set(ALL_SIZES) == {path.stem for path in EXAMPLES.glob("*.pipe")} == set(SIZES) | ELSEWHERE


@pytest.mark.parametrize("schedule,ranks,count", CASES)
def test_every_schedule(tools, tmp_path, schedule, ranks, count):
    program = tools.compile(schedule, ranks, count)
    result = launch(tools, tmp_path, program, *SMALL, "--steps=2", "--check", seed=ranks + count)
    assert result["check"]["passed"] is True


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("schedule,ranks,count", [("dualpipe", 4, 8), ("dualpipev", 2, 6), ("zbv", 2, 4)])
def test_every_type(tools, tmp_path, schedule, ranks, count, dtype, seed):
    program = tools.compile(schedule, ranks, count)
    model = [*SMALL, "--set", f"dtype={dtype}"]
    result = launch(tools, tmp_path, program, *model, "--steps=3", "--lr=0.1", "--check", seed=seed)
    assert result["check"]["passed"] is True
    cpu = tools.launch(program, "--backend=cpu", *model, "--steps=3", "--lr=0.1", "--json")
    assert cpu.returncode == 0, cpu.stderr
    # As docs/cuda.md states them.
    tolerance = {"f32": 2e-6, "bf16": 2 ** -7, "f64": 1e-13}[dtype]
    losses = [[step["loss"] for step in run["steps"]] for run in (result, json.loads(cpu.stdout))]
    assert losses[0] == pytest.approx(losses[1], rel=tolerance)


def test_forward_only(tools, tmp_path):
    program = tools.compile("dualpipe", 4, 8, "--forward-only")
    assert launch(tools, tmp_path, program, *SMALL, "--check")["check"]["passed"] is True


def test_several_blocks_in_a_stage(tools, tmp_path):
    program = tools.compile("dualpipe", 2, 4)
    result = launch(tools, tmp_path, program, *SMALL, "--set", "layers=6", "--check")
    assert result["check"]["passed"] is True


def test_a_model_that_does_nothing(tools, tmp_path):
    program = tools.compile("dualpipe", 4, 8)
    result = launch(tools, tmp_path, program, "--model=noop", "--steps=3", "--check")
    assert result["check"]["passed"] is True
    assert {step["loss"] for step in result["steps"]} == {0}

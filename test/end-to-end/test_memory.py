"""The memory that a program takes with a model, in bytes: what the simulation says without allocating
anything is what a run allocates, for every schedule of the library. The launcher itself refuses to
run where its buffers differ from the prediction (AllocationTest.cpp)."""

import json

import pytest

from conftest import EXAMPLES

SETTINGS = {
    "mlp": ["--model=mlp", "--set", "hidden=24", "--set", "seq=3", "--set", "batch=2"],
    "noop": ["--model=noop"],
}
KINDS = {"input", "output", "grad_output", "grad_input", "saved", "weight_context", "labels"}


def read(tools, program, *arguments):
    done = tools.launch(program, *arguments, "--json", timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["memory"]


def check_sums(rank):
    for entry in rank["classes"]:
        assert entry["kind"] in KINDS
        assert entry["bytes"] == entry["slots"] * entry["slot_bytes"]
        assert entry["slots"] == entry["peak_slots"] + entry["spares"]
        assert entry["peak_bytes"] == entry["peak_slots"] * entry["slot_bytes"]
        assert (entry["peak_at"] is None) == (entry["peak_slots"] == 0)
    assert rank["slots"] == sum(entry["bytes"] for entry in rank["classes"])
    # All classes need not be full at the same moment.
    assert max(entry["peak_bytes"] for entry in rank["classes"]) <= rank["slots_peak"]
    assert rank["slots_peak"] <= sum(entry["peak_bytes"] for entry in rank["classes"])
    assert rank["total"] == sum(rank[name] for name in
                                ("weights", "gradients", "optimizer_state", "workspace", "slots"))


@pytest.mark.parametrize("model", ["mlp", "noop", "plugin"])
@pytest.mark.parametrize("schedule", sorted(path.stem for path in EXAMPLES.glob("*.pipe")))
def test_predicted_is_allocated(tools, plugin, schedule, model):
    settings = SETTINGS.get(model, [f"--model={plugin}"])
    program = tools.compile(schedule, 4, 12)
    predicted = read(tools, program, *settings, "--backend=sim")
    assert predicted == read(tools, program, *settings)
    assert [rank["rank"] for rank in predicted] == [0, 1, 2, 3]
    for rank in predicted:
        check_sums(rank)


@pytest.mark.parametrize("schedule,count,arguments", [
    ("dualpipe", 8, ["--forward-only"]), ("1f1b", 4, ["--forward-only"]), ("dualpipev", 8, ["--spares=0"]),
    ("interleaved", 8, ["--param=chunks=3"]), ("zbv", 3, ["--spares=2"])])
def test_predicted_is_allocated_for_variants(tools, schedule, count, arguments):
    program = tools.compile(schedule, 4, count, *arguments)
    predicted = read(tools, program, *SETTINGS["mlp"], "--backend=sim")
    assert predicted == read(tools, program, *SETTINGS["mlp"])
    for rank in predicted:
        check_sums(rank)
        if "--forward-only" in arguments:
            assert rank["gradients"] == rank["optimizer_state"] == 0


def test_pipelines_that_share_weights_hold_two_copies(tools):
    mirrored = read(tools, tools.compile("dualpipe", 4, 8), *SETTINGS["mlp"], "--backend=sim")
    single = read(tools, tools.compile("1f1b", 4, 8), *SETTINGS["mlp"], "--backend=sim")
    assert [rank["weights"] for rank in mirrored] == [2 * rank["weights"] for rank in single]
    assert [rank["gradients"] for rank in mirrored] == [2 * rank["gradients"] for rank in single]


def test_activations_of_1f1b(tools):
    """Rank r of P holds P - r saved contexts at once."""
    for rank in read(tools, tools.compile("1f1b", 4, 8), *SETTINGS["mlp"], "--backend=sim"):
        saved = next(entry for entry in rank["classes"] if entry["kind"] == "saved")
        assert saved["peak_slots"] == 4 - rank["rank"]
        assert f": forward of stage {rank['rank']}, micro-batch {3 - rank['rank']} (" in saved["peak_at"]["what"]
        assert "1f1b.pipe:" in saved["peak_at"]["what"]


def test_text(tools):
    program = tools.compile("1f1b", 4, 8)
    done = tools.launch(program, *SETTINGS["mlp"])
    assert done.returncode == 0, done.stderr
    weights = read(tools, program, *SETTINGS["mlp"], "--backend=sim")[0]["weights"] / 1024
    assert "  memory of rank 0: " in done.stdout
    assert f": weights {weights:.1f} KiB, gradients {weights:.1f} KiB, workspace " in done.stdout
    report = tools.launch(program, *SETTINGS["mlp"], "--backend=sim")
    assert report.returncode == 0, report.stderr
    assert "most that hold values, in the order of the list" in report.stdout


def test_without_a_model_there_are_no_bytes(tools):
    program = tools.compile("1f1b", 4, 8)
    assert read(tools, program, "--backend=sim") is None
    assert "in use at once" not in tools.launch(program, "--backend=sim").stdout


@pytest.mark.parametrize("arguments,message", [
    (["--set", "hidden=8"], "--set does not apply with --backend=sim without --model, which gives the sizes"),
    (["--optimizer=sgd"], "--optimizer does not apply with --backend=sim without --model"),
    (["--model=mlp", "--set", "hiden=8"], "unknown setting 'hiden' (did you mean 'hidden'?)"),
    (["--model=none"], "none"),
    (["--model=mlp", "--optimizer=none"], "unknown optimizer 'none'")])
def test_mistakes(tools, arguments, message):
    done = tools.launch(tools.compile("1f1b", 4, 8), "--backend=sim", *arguments)
    assert done.returncode == 1
    assert message in done.stderr


def predict(tools, schedule, *arguments):
    """The memory in a report of dualpipe-opt, which has no model."""
    done = tools.opt(EXAMPLES / f"{schedule}.pipe", "--ranks=4", "--microbatches=8", *arguments,
                     "--emit=report", "--format=json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["memory"]


def test_a_profile_has_the_sizes_of_its_model(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    profile = tmp_path / "profile.json"
    allocated = read(tools, program, *SETTINGS["mlp"], "--steps=2", f"--profile={profile}")
    assert predict(tools, "1f1b", f"--cost={profile}") == allocated
    assert read(tools, program, "--backend=sim", f"--cost={profile}") == allocated
    # It serves another schedule of as many stages.
    assert predict(tools, "gpipe", f"--cost={profile}") == read(
        tools, tools.compile("gpipe", 4, 8), *SETTINGS["mlp"])
    assert predict(tools, "1f1b") is None
    text = tools.opt(EXAMPLES / "1f1b.pipe", "--ranks=4", "--microbatches=8", f"--cost={profile}", "--emit=report")
    assert text.returncode == 0, text.stderr
    assert "most that hold values, in the order of the list" in text.stdout

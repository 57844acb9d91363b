"""launcher --graph on GPUs made of software: steps that are captured once and launched again.

Never run on a GPU.
"""

import json

import pytest
from test_cuda import SMALL, fails, has_driver, run, soft

MODEL = [*SMALL, "--set", "dtype=f32"]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus,options", [(1, []), (8, []), (8, ["--fold-channels"])])
@pytest.mark.parametrize("schedule,ranks,microbatches", [
    ("1f1b", 2, 4), ("dualpipe", 4, 8), ("dualpipev", 2, 4), ("interleaved", 2, 4), ("zb-h1", 3, 5)])
def test_a_captured_run_agrees_with_its_replay(tools, tmp_path, schedule, ranks, microbatches, gpus, options):
    program = tools.compile(schedule, ranks, microbatches)
    done = run(tools, tmp_path, program, *MODEL, "--graph=require", "--steps=4", "--check", *options,
               seed=ranks, gpus=gpus)
    assert "on cuda (" in done.stdout
    assert "check passed: losses, gradients and weights agree bit for bit" in done.stdout
    assert done.stderr == ""


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_a_graph_computes_what_issued_steps_do(tools, tmp_path, dtype, gpus):
    """Learning from step to step: the graph reads step and learning rate from memory."""
    program = tools.compile("dualpipe", 2, 4)
    arguments = [program, *SMALL, "--set", f"dtype={dtype}", "--lr=0.5", "--json"]
    issued = json.loads(run(tools, tmp_path, *arguments, "--steps=3", seed=1, gpus=gpus).stdout)
    captured = json.loads(run(tools, tmp_path, *arguments, "--graph", seed=2, gpus=gpus).stdout)
    assert captured["captured_steps"] == 2
    assert "captured_steps" not in issued
    assert captured["weights_digest"] == issued["weights_digest"]
    losses = [[step["loss"] for step in result["steps"]] for result in (issued, captured)]
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 3


@pytest.mark.usefixtures("kernels")
def test_a_model_without_work(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    run(tools, tmp_path, program, "--model=noop", "--graph=require", "--check")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 2])
def test_what_cannot_be_captured_is_issued_with_a_note(tools, tmp_path, gpus):
    program = tools.compile("1f1b", 2, 4)
    reason = "cannot be captured: cuGraphInstantiateWithFlags failed: CUDA_ERROR_OUT_OF_MEMORY"
    fault = "cuGraphInstantiateWithFlags:1:2"
    done = run(tools, tmp_path, program, *MODEL, "--graph", "--check", fail=fault, gpus=gpus)
    assert done.stderr.count("launcher: note: ") == 1
    done_json = run(tools, tmp_path, program, *MODEL, "--graph", "--json", fail=fault, gpus=gpus)
    assert json.loads(done_json.stdout)["captured_steps"] == 0
    assert f"launcher: note: steps are issued without graphs, since one {reason}" in done.stderr
    assert "check passed" in done.stdout
    done = tools.launch(program, "--backend=cuda", *MODEL, "--graph=require", env=soft(fail=fault, gpus=gpus))
    fails(done, f"launcher: error: graphs are required (--graph=require), and a step {reason}")
    assert "note: " not in done.stderr


@pytest.mark.usefixtures("kernels")
def test_a_launch_that_fails(tools):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", *MODEL, "--graph", env=soft(fail="cuGraphLaunch:2:719", gpus=2)),
          "a captured step: cuGraphLaunch failed: CUDA_ERROR_LAUNCH_FAILED")


@pytest.mark.usefixtures("kernels")
def test_three_steps_unless_told(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    done = run(tools, tmp_path, program, *MODEL, "--graph")
    assert done.stdout.count("\nstep ") == 3


@pytest.mark.usefixtures("kernels")
def test_a_model_for_the_cpu_alone(tools, plugin):
    program = tools.compile("1f1b", 2, 4)
    reason = "runs on the CPU only"
    for model in [plugin, "wait"]:
        done = tools.launch(program, f"--model={model}", "--backend=auto", "--check", env=soft())
        assert done.returncode == 0, done.stderr
        assert "launcher: note: running on the CPU: " in done.stderr and reason in done.stderr
        fails(tools.launch(program, f"--model={model}", "--graph", env=soft()), "launcher: error: ", reason)


# Command lines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments,text", [
    (["--backend=cpu"], "--graph does not apply without --backend=cuda or auto: it captures what a GPU does"),
    (["--backend=sim"], "--graph does not apply without --backend=cuda or auto: it captures what a GPU does"),
    (["--jitter=1"], "--graph does not apply with --jitter, which runs on the CPU"),
    (["--shuffle=1"], "--graph does not apply with --shuffle, which runs on the CPU"),
    (["--trace=x.json"], "--graph does not apply with --trace: times of commands cannot be taken in a captured step"),
    (["--backend=cuda", "--profile=x.json"], "--graph does not apply with --profile: times of commands"),
    (["--explain"], "--graph does not apply with --explain: times of commands"),
    (["--steps=1"], "--graph needs --steps=2 or more: the first step is not captured")])
def test_options_that_do_not_go_with_it(tools, arguments, text):
    fails(tools.launch("x.dpx", "--graph", *arguments), f"launcher: error: {text}")


def test_it_takes_no_word_from_the_line(tools):
    fails(tools.launch("--graph", "x.dpx"), "x.dpx")
    fails(tools.launch("x.dpx", "--graph=maybe"), "--graph: maybe not in {try,require}")


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_auto_does_not_go_on_with_the_cpu(tools):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, *MODEL, "--graph"),
          "--graph captures what a GPU does, and none can be used: there is no CUDA driver")

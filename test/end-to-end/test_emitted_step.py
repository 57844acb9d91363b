"""Steps that --emit=cuda wrote: built by the CMake file beside them, run by the launcher, held against the program.

GPUs are made of software (test/support/softgpu). DUALPIPE_NVCC=all has nvcc compile the steps of every
schedule of the library at 8 ranks; without it a slice, and the C++ compiler all of them.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BIN, EXAMPLES, ROOT

SOFT = BIN.parent / "softcuda"
INCLUDE = ROOT / "include"
SMALL = ["--set", "hidden=8", "--set", "seq=4", "--set", "batch=2", "--steps=2"]
NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
ALL_BY_NVCC = os.environ.get("DUALPIPE_NVCC") == "all"
SLICE_BY_NVCC = ["dualpipe", "interleaved", "zbv"]

# Micro-batches of the library on 8 ranks; few, since only the text is of interest.
AT_8_RANKS = {
    "1f1b": 8, "1f1b-rules": 8, "chimera": 8, "dualpipe": 16, "dualpipev": 16, "eager-1f1b": 8, "gpipe": 8,
    "hanayo": 8, "interleaved": 8, "looped-bfs": 8, "seq1f1b": 8, "v-half": 8, "v-min": 8, "zb-h1": 8,
    "zb-h1-rules": 8, "zb-h2": 16, "zbv": 16,
}


def call(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def emit(tools, folder, source, *options):
    """The folder that --emit=cuda wrote."""
    done = tools.opt(source, *options, "--emit=cuda", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def build(folder, *options):
    """The shared object of a folder, by the CMake file that stands in it."""
    call("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DDUALPIPE_INCLUDE_DIR={INCLUDE}",
         "-DCMAKE_CXX_FLAGS=-Werror", *options)
    call("cmake", "--build", folder / "build")
    step, = (folder / "build").glob("lib*_step.so")
    return step


@pytest.fixture(scope="session")
def steps(tools, tmp_path_factory):
    """Builds each step once: the program file and the shared object."""
    built = {}

    def get(schedule, ranks, microbatches, *options):
        key = (schedule, ranks, microbatches, options)
        if key not in built:
            folder = emit(tools, tmp_path_factory.mktemp("step") / schedule, EXAMPLES / f"{schedule}.pipe",
                          f"--ranks={ranks}", f"--microbatches={microbatches}", *options)
            program, = folder.glob("*.dpx")
            built[key] = program, build(folder)
        return built[key]
    return get


def launch(tools, program, *arguments, step=None, env=None):
    done = tools.launch(program, *([f"--step={step}"] if step else []), *SMALL, "--check", "--json", *arguments,
                        env=env)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["check"]["passed"]
    assert result.get("step") == (str(step) if step else None)
    return result


def expect_same_run(tools, program, step, *arguments, env=None):
    """Not a bit of losses and weights differs."""
    commands = launch(tools, program, *arguments, env=env)
    emitted = launch(tools, program, *arguments, step=step, env=env)
    assert emitted["device"] == commands["device"]
    assert emitted["weights_digest"] == commands["weights_digest"]
    assert [run["loss"] for run in emitted["steps"]] == [run["loss"] for run in commands["steps"]]
    return emitted


# Runs ----------------------------------------------------------------------------------------------

CASES = [("1f1b", 2, 4), ("dualpipe", 4, 8), ("dualpipev", 2, 4), ("interleaved", 2, 4), ("zb-h1", 4, 6)]


@pytest.mark.parametrize("schedule,ranks,microbatches", CASES)
def test_on_the_cpu(tools, steps, schedule, ranks, microbatches):
    program, step = steps(schedule, ranks, microbatches)
    expect_same_run(tools, program, step, "--backend=cpu", "--jitter=5")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("transport", ["copies", "nccl", "folded"])
@pytest.mark.parametrize("schedule,ranks,microbatches", CASES)
def test_on_gpus(tools, steps, tmp_path, schedule, ranks, microbatches, transport):
    program, step = steps(schedule, ranks, microbatches)
    gpus = 1 if transport == "copies" else ranks
    for seed in [3, 4, 5]:
        report = tmp_path / "report"
        env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed={seed},gpus={gpus}",
               "DUALPIPE_SOFTGPU_REPORT": str(report)}
        options = ["--fold-channels"] if transport == "folded" else []
        result = expect_same_run(tools, program, step, "--backend=cuda", *options, env=env)
        assert ("communicators" in result["device"]) == (transport != "copies")
        # No race, no use of what is not there, no wait that never ends.
        assert report.read_text().splitlines()[1:] == []


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("transport", ["copies", "nccl", "folded"])
def test_as_a_graph(tools, steps, tmp_path, transport):
    """What is captured comes from the emitted step then."""
    program, step = steps("dualpipe", 4, 8)
    report = tmp_path / "report"
    env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed=6,gpus={1 if transport == 'copies' else 4}",
           "DUALPIPE_SOFTGPU_REPORT": str(report)}
    options = ["--fold-channels"] if transport == "folded" else []
    result = expect_same_run(tools, program, step, "--backend=cuda", "--graph=require", *options, env=env)
    assert result["captured_steps"] == 1
    assert report.read_text().splitlines()[1:] == []


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 4])
def test_inference_and_a_model_without_work(tools, steps, gpus):
    """What has no bytes passes by copies, and not at all by NCCL."""
    program, step = steps("dualpipe", 4, 8, "--forward-only")
    env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed=1,gpus={gpus}"}
    expect_same_run(tools, program, step, "--backend=cuda", env=env)
    done = tools.launch(program, f"--step={step}", "--model=noop", "--backend=cuda", env=env)
    assert done.returncode == 0, done.stderr
    assert f"commands a step, issued by {step}\n" in done.stdout


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 2])
def test_groups(tools, tmp_path, gpus):
    """A module in which each send is a group."""
    text = tools.opt(EXAMPLES / "1f1b.pipe", "--ranks=2", "--microbatches=4", "--emit=streams").stdout
    grouped = re.sub(r"(stream\.send \w+ on (\d+).*)", r"stream.group on \2 {\n\1\n}", text)
    (tmp_path / "x.mlir").write_text(grouped)
    folder = emit(tools, tmp_path / "step", tmp_path / "x.mlir")
    assert "group.ncclGroupStart()" in (folder / "rank0.cu").read_text()
    program, = folder.glob("*.dpx")
    env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed=1,gpus={gpus}"}
    expect_same_run(tools, program, build(folder), "--backend=cuda", env=env)


def test_a_step_that_is_changed_by_hand_fails_the_check(tools, tmp_path):
    """The text is what runs: without a weight half the gradients are others."""
    folder = emit(tools, tmp_path / "step", EXAMPLES / "zb-h1.pipe", "--ranks=2", "--microbatches=4")
    rank = folder / "rank1.cu"
    text, count = re.subn(r"  DP_AT\(\d+, backward_weight\(stage\(1\), mb\(2\)[^;]*;\n", "", rank.read_text())
    assert count == 1
    rank.write_text(text)
    program, = folder.glob("*.dpx")
    done = tools.launch(program, f"--step={build(folder)}", "--backend=cpu", *SMALL, "--check")
    assert done.returncode == 1
    assert "the run does not agree with its replay" in done.stderr


# Failures ------------------------------------------------------------------------------------------


def fails(done, *texts):
    assert done.returncode == 1
    for text in texts:
        assert text in done.stderr, done.stderr
    return done


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus,fault,what,why", [
    (2, "cuEventRecord:5:700", r"record of event \d+", "cuEventRecord failed: CUDA_ERROR_ILLEGAL_ADDRESS"),
    (2, "cuStreamWaitEvent:5:999", r"wait of event \d+", "cuStreamWaitEvent failed: CUDA_ERROR_UNKNOWN"),
    (2, "ncclSend:2:2", r"send of the \w+ for stage \d, micro-batch \d to rank \d",
     r"ncclSend on the communicator from rank \d to rank \d \(\w+\) failed: ncclSystemError"),
    (2, "ncclRecv:1:2", r"recv of the \w+ for stage \d, micro-batch \d from rank \d",
     r"ncclRecv on the communicator from rank \d to rank \d \(\w+\) failed: ncclSystemError"),
    (1, "cuLaunchKernel:40:701", r"[\w ]+ of stage \d(, micro-batch \d)?", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
])
def test_a_call_that_fails_names_its_place(tools, steps, gpus, fault, what, why):
    program, step = steps("1f1b", 2, 4)
    env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed=1,gpus={gpus},fail={fault}"}
    done = fails(tools.launch(program, f"--step={step}", "--backend=cuda", *SMALL, env=env))
    place = r"launcher: error: rank \d, command \d+: " + what + r" \(.*1f1b\.pipe:\d+:\d+\): (?!rank).*" + why
    assert re.search(place, done.stderr), done.stderr


@pytest.mark.usefixtures("kernels")
def test_a_copy_that_fails_names_its_place(tools, steps):
    """Models copy, too; which copies are transfers is left to the threads of two ranks."""
    program, step = steps("1f1b", 2, 4)
    place = (r"launcher: error: rank \d, command \d+: (send|recv) of the \w+ for stage \d, micro-batch \d (to|from) "
             r"rank \d \(.*1f1b\.pipe:\d+:\d+\): (command \d+ failed at its other end: )?cuMemcpyDtoDAsync failed: "
             "CUDA_ERROR_ILLEGAL_ADDRESS")
    found = 0
    for number in range(1, 12):
        env = {"LD_LIBRARY_PATH": str(SOFT), "DUALPIPE_SOFTGPU": f"seed=1,fail=cuMemcpyDtoDAsync:{number}:700"}
        done = fails(tools.launch(program, f"--step={step}", "--backend=cuda", *SMALL, env=env))
        found += bool(re.search(place, done.stderr))
    assert found


def compile_plugin(folder, text):
    (folder / "x.cpp").write_text(text)
    call("g++", "-std=c++20", "-shared", "-fPIC", f"-I{INCLUDE}", folder / "x.cpp", "-o", folder / "libx.so")
    return folder / "libx.so"


def test_what_is_no_step(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    (tmp_path / "text.so").write_text("not a shared object")
    fails(tools.launch(program, f"--step={tmp_path / 'text.so'}"), f"cannot load the step '{tmp_path}/text.so': ")
    plugin = compile_plugin(tmp_path, "int nothing;")
    fails(tools.launch(program, f"--step={plugin}"),
          f"{plugin}: not a step of --emit=cuda: it does not export 'dp_get_step'")
    plugin = compile_plugin(tmp_path, 'extern "C" const void *dp_get_step() { return nullptr; }')
    fails(tools.launch(program, f"--step={plugin}"), f"{plugin}: its 'dp_get_step' returned no step")


def test_a_step_of_another_version(tools, tmp_path):
    folder = emit(tools, tmp_path / "step", EXAMPLES / "1f1b.pipe", "--ranks=2", "--microbatches=4")
    table = folder / "step.cpp"
    table.write_text(table.read_text().replace("DP_STEP_ABI_VERSION,", "DP_STEP_ABI_VERSION - 1,"))
    program, = folder.glob("*.dpx")
    fails(tools.launch(program, f"--step={build(folder)}"),
          "built for another version of the step interface, expected 1, got 0; emit it again")


def test_a_step_of_another_program(tools, steps):
    _, step = steps("1f1b", 2, 4)
    fails(tools.launch(tools.compile("1f1b", 4, 4), f"--step={step}"),
          f"{step}: the step of 'one_f_one_b' on 2 ranks, expected that of 'one_f_one_b' on 4, which the program")
    fails(tools.launch(tools.compile("1f1b", 2, 6), f"--step={step}"),
          f"{step}: the step of rank 0 was emitted from another program (digest ", "emit and build it again")


def test_a_step_of_one_rank(tools, tmp_path):
    """Goes with the program of all ranks, as far as it goes."""
    folder = emit(tools, tmp_path / "step", EXAMPLES / "1f1b.pipe", "--ranks=2", "--microbatches=4", "--only-rank=0")
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, f"--step={build(folder)}"),
          "there is no step for rank 1; emit all ranks, without --only-rank")


@pytest.mark.parametrize("option", ["--shuffle=1", "--trace=x.json", "--profile=x.json", "--explain"])
def test_options_that_do_not_apply(tools, option):
    fails(tools.launch("x.dpx", "--step=libx.so", "--steps=3", option),
          "does not apply with --step: it takes the program's own commands")


def test_a_prediction_has_no_step(tools):
    fails(tools.launch("x.dpx", "--step=libx.so", "--backend=sim"), "--step does not apply with --backend=sim")


# Texts ---------------------------------------------------------------------------------------------


def test_the_library_is_here():
    assert sorted(AT_8_RANKS) == sorted(path.stem for path in EXAMPLES.glob("*.pipe"))


@pytest.fixture(scope="session")
def texts(tools, tmp_path_factory):
    """The folder of a schedule at 8 ranks, and a file that includes all its ranks."""
    made = {}

    def get(schedule):
        if schedule not in made:
            folder = emit(tools, tmp_path_factory.mktemp("text") / schedule, EXAMPLES / f"{schedule}.pipe",
                          "--ranks=8", f"--microbatches={AT_8_RANKS[schedule]}")
            ranks = sorted(folder.glob("rank*.cu"))
            assert len(ranks) == 8
            (folder / "all.cu").write_text("".join(f'#include "{rank.name}"\n' for rank in ranks))
            made[schedule] = folder
        return made[schedule]
    return get


@pytest.mark.parametrize("schedule", AT_8_RANKS)
def test_the_compiler_has_no_warning(texts, schedule):
    folder = texts(schedule)
    done = call("g++", "-x", "c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
                "-Wmissing-declarations", "-Werror", f"-I{INCLUDE}", folder / "all.cu", folder / "step.cpp")
    assert done.stderr == ""


@pytest.mark.skipif(not NVCC, reason="no nvcc on this machine")
@pytest.mark.parametrize("schedule", AT_8_RANKS if ALL_BY_NVCC else SLICE_BY_NVCC)
def test_nvcc_has_no_warning(texts, tmp_path, schedule):
    folder = texts(schedule)
    done = call(NVCC, "-std=c++20", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror",
                f"-I{INCLUDE}", "-c", folder / "all.cu", "-o", tmp_path / "all.o")
    assert done.stderr == ""


@pytest.mark.skipif(not NVCC, reason="no nvcc on this machine")
def test_nvcc_builds_a_plugin(tools, tmp_path):
    folder = emit(tools, tmp_path / "step", EXAMPLES / "dualpipe.pipe", "--ranks=2", "--microbatches=4")
    step = build(folder, "-DDUALPIPE_STEP_NVCC=ON", f"-DCMAKE_CUDA_COMPILER={NVCC}")
    expect_same_run(tools, folder / "dualpipe.dpx", step, "--backend=cpu")


@pytest.mark.parametrize("change,error", [
    (r"labels\[0\]", "labels[1]"), (r"act_from_0\)\);", "grad_nowhere));")])
def test_the_compiler_finds_what_is_not_there(tools, tmp_path, change, error):
    """A slot beyond its class, a stream without a name."""
    folder = emit(tools, tmp_path / "step", EXAMPLES / "dualpipe.pipe", "--ranks=2", "--microbatches=4")
    rank = folder / "rank1.cu"
    rank.write_text(re.sub(change, error, rank.read_text(), count=1))
    done = subprocess.run(["g++", "-x", "c++", "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", rank],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert "thisClassHasFewerSlots" in done.stderr or "grad_nowhere" in done.stderr


def test_headers_of_nvidia_may_be_included_too(tools, tmp_path):
    headers = [path for path in ["/usr/local/cuda/include/cuda.h", "/usr/local/cuda/include/nccl.h"]
               if os.path.exists(path)]
    if not headers:
        pytest.skip("no headers of CUDA on this machine")
    folder = emit(tools, tmp_path / "step", EXAMPLES / "dualpipe.pipe", "--ranks=2", "--microbatches=4")
    rank = folder / "rank1.cu"
    rank.write_text("".join(f'#include "{path}"\n' for path in headers) + rank.read_text())
    call("g++", "-x", "c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}",
         "-isystem", "/usr/local/cuda/include", rank)

"""The cuda backend from the command line: what is missing, and programs on GPUs made of software.

build/softcuda holds libcuda, libnccl and libcublas made of software (test/support/softgpu); the
launcher opens them as it opens the real ones. Never run on a GPU.
"""

import ctypes
import json
import pathlib

import pytest
from conftest import BIN

BUILD = BIN.parent
SOFT = BUILD / "softcuda"
STUB = pathlib.Path("/usr/local/cuda/lib64/stubs/libcuda.so")
SMALL = ["--set", "hidden=8", "--set", "seq=4", "--set", "batch=2"]


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def soft(folder=SOFT, **options):
    """An environment in which GPUs are made of software."""
    return {"LD_LIBRARY_PATH": str(folder),
            "DUALPIPE_SOFTGPU": ",".join(f"{key}={value}" for key, value in options.items())}


def fails(done, *texts):
    assert done.returncode == 1
    for text in texts:
        assert text in done.stderr


# What is missing ------------------------------------------------------------------------------


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_no_driver(tools):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda"),
          "there is no CUDA driver; install NVIDIA's driver, or use --backend=cpu")
    done = tools.launch("--devices")
    assert done.returncode == 0
    assert "cuda: unusable: there is no CUDA driver" in done.stdout


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
def test_auto_goes_on_with_the_cpu_and_says_so(tools):
    program = tools.compile("1f1b", 2, 4)
    done = tools.launch(program, "--backend=auto", *SMALL, "--check")
    assert done.returncode == 0
    assert "on cpu," in done.stdout
    assert "launcher: note: running on the CPU: there is no CUDA driver" in done.stderr
    assert tools.launch(program, *SMALL).stderr == ""


@pytest.mark.skipif(not STUB.exists(), reason="no stub of the CUDA driver on this machine")
def test_the_stub_is_no_driver(tools, tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(STUB)
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", env={"LD_LIBRARY_PATH": str(tmp_path)}),
          "libcuda.so.1 is the stub of the CUDA toolkit, not a driver",
          "CUDA_ERROR_STUB_LIBRARY", "install NVIDIA's driver")


@pytest.mark.parametrize("options,text", [
    ({"driver": 11080}, "the CUDA driver supports CUDA 11.8, expected 12.0 or later; update NVIDIA's driver"),
    ({"missing": "cuMemAlloc"}, "lacks the function cuMemAlloc, there since 3.2"
     ": the installation is damaged; reinstall NVIDIA's driver"),
    ({"gpus": 0}, "the CUDA driver finds no GPU (cuInit: CUDA_ERROR_NO_DEVICE)"),
    ({"fail": "cuInit:1:803"}, "the CUDA driver and the kernel module differ"),
    ({"fail": "cuInit:1:999"}, "the CUDA driver cannot start (cuInit: CUDA_ERROR_UNKNOWN, 999)"),
    ({"fail": "cuDriverGetVersion:1:1"}, "the CUDA driver does not say its version (cuDriverGetVersion); reinstall NVIDIA's driver"),
    ({"fail": "cublasGetProperty:1:1"}, "cuBLAS does not say its version (cublasGetProperty); reinstall cuBLAS"),
])
def test_a_driver_that_cannot_be_used(tools, options, text):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", *SMALL, env=soft(**options)), text)


@pytest.mark.usefixtures("kernels")
def test_a_gpu_that_is_too_small(tools):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", *SMALL, env=soft(memory=100000)),
          "cuMemAlloc of ", "on GPU 0, which has ", " of 100000 free, failed: CUDA_ERROR_OUT_OF_MEMORY")


def test_a_library_with_the_name_of_a_driver(tools, tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(BUILD / "faulty-nccl/old/libnccl.so.2")
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", env={"LD_LIBRARY_PATH": str(tmp_path)}),
          "libcuda.so.1 lacks the function cuInit"
          ": the installation is incomplete or another library has its name; reinstall it")


@pytest.mark.parametrize("folder,text", [
    ("old", "nccl: unusable: NCCL is version 2.15.1, expected 2.18.0 or later; update NCCL"),
    ("incomplete", "nccl: unusable: libnccl.so.2 lacks the function ncclGetErrorString")])
def test_an_nccl_that_cannot_be_used(tools, folder, text):
    done = tools.launch("--devices", env={"LD_LIBRARY_PATH": str(BUILD / "faulty-nccl" / folder)})
    assert done.returncode == 0
    assert text in done.stdout


def with_nccl(folder, **options):
    """GPUs made of software, with an NCCL that cannot be used."""
    env = soft(**options)
    return {**env, "LD_LIBRARY_PATH": f"{BUILD / 'faulty-nccl' / folder}:{env['LD_LIBRARY_PATH']}"}


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("folder,reason", [
    ("old", "NCCL is version 2.15.1, expected 2.18.0 or later; update NCCL"),
    ("incomplete", "libnccl.so.2 lacks the function ncclGetErrorString")])
def test_a_gpu_per_rank_needs_nccl(tools, folder, reason):
    """Who asks for GPUs is told; who leaves the choice gets one GPU, and is told."""
    program = tools.compile("1f1b", 2, 4)
    text = f"each of 2 ranks could have a GPU, but NCCL between them cannot be used: {reason}"
    fails(tools.launch(program, "--backend=cuda", *SMALL, env=with_nccl(folder, gpus=2)), text,
          "; or let all ranks share a GPU with CUDA_VISIBLE_DEVICES=0")
    for backend in [[], ["--backend=auto"]]:
        done = tools.launch(program, *backend, *SMALL, "--check", env=with_nccl(folder, gpus=2))
        assert done.returncode == 0, done.stderr
        assert "on cuda (GPU made of software)" in done.stdout
        assert f"launcher: note: all ranks run on one GPU: {text}" in done.stderr


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("ranks,gpus", [(1, 2), (2, 1)])
def test_no_nccl_where_none_is_needed(tools, ranks, gpus):
    program = tools.compile("1f1b", ranks, 4)
    done = tools.launch(program, "--backend=cuda", *SMALL, "--check", env=with_nccl("old", gpus=gpus))
    assert done.returncode == 0, done.stderr
    assert "on cuda (GPU made of software)" in done.stdout
    assert done.stderr == ""


@pytest.mark.usefixtures("kernels")
def test_folded_channels_need_a_gpu_per_rank(tools):
    program = tools.compile("1f1b", 4, 4)
    text = ("--fold-channels folds what NCCL does between GPUs, expected a GPU for each of 4 ranks, "
            "got 3; leave it out, and all ranks run on one GPU")
    fails(tools.launch(program, "--backend=cuda", "--fold-channels", *SMALL, env=soft(gpus=3)), text)
    for backend in [[], ["--backend=auto"]]:
        done = tools.launch(program, *backend, "--fold-channels", *SMALL, env=soft(gpus=3))
        assert done.returncode == 0, done.stderr
        assert f"launcher: note: running on the CPU: {text}" in done.stderr


def list_spans(trace):
    events = json.loads(trace.read_text())["traceEvents"]
    return sorted((event["pid"], event["name"], event["dur"]) for event in events if event["ph"] == "X")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 4])
def test_times_are_recorded(tools, tmp_path, gpus):
    """A trace, a profile that --cost takes, and an explanation, by the clocks of GPUs."""
    program = tools.compile("dualpipe", 4, 8)
    trace, profile = tmp_path / "trace.json", tmp_path / "profile.json"
    done = tools.launch(program, "--backend=cuda", *SMALL, "--steps=3", f"--trace={trace}",
                        f"--profile={profile}", "--explain", env=soft(gpus=gpus))
    assert done.returncode == 0, done.stderr
    assert "on cuda (" in done.stdout and "makespan" in done.stdout
    spans = list_spans(trace)
    assert all(duration >= 0 for *_, duration in spans)
    done = tools.launch(program, "--backend=cpu", *SMALL, "--steps=3", f"--trace={trace}")
    assert done.returncode == 0, done.stderr
    assert [span[:2] for span in spans] == [span[:2] for span in list_spans(trace)]
    assert all(function["cpu"] == 0 for function in json.loads(profile.read_text())["functions"])
    done = tools.launch(program, "--backend=sim", f"--cost={profile}")
    assert done.returncode == 0, done.stderr


def test_an_nccl_without_a_version(tools):
    done = tools.launch("--devices", env=soft(fail="ncclGetVersion:1:3"))
    assert "nccl: unusable: NCCL does not say its version (ncclGetVersion); reinstall NCCL" in done.stdout


def test_devices_are_listed(tools):
    done = tools.launch("--devices", env=soft(gpus=2))
    assert done.returncode == 0
    assert "cuda: the driver supports CUDA 13.0\n" in done.stdout
    assert "  GPU 1: GPU made of software, 4.0 GiB, compute capability 9.0, 1 multi" in done.stdout
    assert "nccl: 2.28.9\n" in done.stdout
    assert "cublas: 13.1.0\n" in done.stdout
    assert "\nkernels: " in done.stdout


@pytest.mark.parametrize("option", ["--jitter=1", "--shuffle=1"])
def test_options_of_the_cpu(tools, option):
    fails(tools.launch("x.dpx", "--backend=cuda", option), "does not apply with --backend=cuda")


# Programs ---------------------------------------------------------------------------------------


def run(tools, tmp_path, program, *arguments, **options):
    """Runs on GPUs made of software, which must have nothing to report."""
    report = tmp_path / "report"
    env = {**soft(**options), "DUALPIPE_SOFTGPU_REPORT": str(report)}
    done = tools.launch(program, "--backend=cuda", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    lines = report.read_text().splitlines()
    assert lines[1:] == []
    assert int(lines[0].split()[0]) > 100
    return done


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("gpus", [1, 8])
@pytest.mark.parametrize("schedule,ranks,microbatches", [
    ("1f1b", 2, 4), ("dualpipe", 4, 8), ("dualpipev", 2, 4), ("interleaved", 2, 4)])
def test_a_run_agrees_with_its_replay(tools, tmp_path, schedule, ranks, microbatches, gpus):
    program = tools.compile(schedule, ranks, microbatches)
    done = run(tools, tmp_path, program, *SMALL, "--steps=2", "--check", seed=3, gpus=gpus)
    assert "on cuda (" in done.stdout
    assert "check passed: losses, gradients and weights agree bit for bit" in done.stdout


@pytest.mark.usefixtures("kernels")
def test_a_model_without_work(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    run(tools, tmp_path, program, "--model=noop", "--check")


@pytest.mark.usefixtures("kernels")
def test_auto_takes_the_gpu(tools):
    program = tools.compile("1f1b", 2, 4)
    done = tools.launch(program, *SMALL, env=soft())
    assert done.returncode == 0, done.stderr
    assert "on cuda (GPU made of software)" in done.stdout


@pytest.mark.usefixtures("kernels")
def test_a_kernel_that_never_ends(tools):
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", *SMALL, "--timeout=5", env=soft(hang=40, threads=2)),
          "CUDA_ERROR_LAUNCH_TIMEOUT", "of GPU 0")


@pytest.mark.usefixtures("kernels")
def test_a_check_that_cannot_run(tools):
    """The run is through; the replay is on the same GPU."""
    program = tools.compile("1f1b", 2, 4)
    fails(tools.launch(program, "--backend=cuda", *SMALL, "--check", env=soft(gpus=2, fail="cuLaunchKernel:80:719")),
          "launcher: error: the check could not run: model 'mlp': forward of stage ", "CUDA_ERROR_LAUNCH_FAILED")

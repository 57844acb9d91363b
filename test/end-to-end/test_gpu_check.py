"""scripts/gpu-check.sh, on GPUs made of software and where there is none.

What it says of real GPUs only a machine with one can show.
"""

import json
import os
import subprocess

import pytest
from conftest import BIN, ROOT

SOFT = {"LD_LIBRARY_PATH": str(BIN.parent / "softcuda")}


def gpu_check(*arguments, env):
    return subprocess.run([ROOT / "scripts" / "gpu-check.sh", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **env}, timeout=300)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu-check")
    subprocess.run(["python3", ROOT / "scripts" / "gpu_check.py", "--compile", BIN / "dualpipe-opt", folder], check=True)
    return folder


def run_quick(programs, tmp_path, settings):
    done = gpu_check("--launcher", BIN / "launcher", "--programs", programs, "--out", tmp_path, "--quick",
                     env={**SOFT, "DUALPIPE_SOFTGPU": settings})
    return done, json.loads((tmp_path / "gpu-check.json").read_text())


def test_no_gpu(programs, tmp_path):
    done = gpu_check("--launcher", BIN / "launcher", "--programs", programs, "--out", tmp_path,
                     env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert "gpu-check: no GPU is found here (above); nothing was run" in done.stdout
    assert "cuda: unusable: " in done.stdout


@pytest.mark.usefixtures("kernels")
def test_all_pass(programs, tmp_path):
    done, result = run_quick(programs, tmp_path, "seed=1,gpus=2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["result"] for row in result["checks"]} == {"passed"}
    kinds = {row["check"] for row in result["checks"]}
    assert kinds == {"copies", "copies, graph", "emitted", "emitted, graph", "nccl", "nccl, folded", "nccl, graph"}
    assert all(value > 0 for value in result["figures"].values()) and len(result["figures"]) == 4
    assert "compute-sanitizer: left out by --quick" in result["notes"]
    assert f"{len(result['checks'])} passed, 0 failed" in done.stdout


@pytest.mark.usefixtures("kernels")
def test_what_fails_is_told(programs, tmp_path):
    done, result = run_quick(programs, tmp_path, "seed=1,gpus=2,fail=ncclSend:2:3")
    assert done.returncode == 1
    failed = [row for row in result["checks"] if row["result"] == "FAILED"]
    assert {row["check"] for row in failed} == {"nccl", "nccl, folded", "nccl, graph"}
    assert all("ncclInternalError" in row["message"] for row in failed), failed
    assert "ncclInternalError" in done.stdout


def test_unknown_option():
    done = gpu_check("--fast", env={})
    assert done.returncode == 1
    assert done.stderr == "gpu-check.sh: unknown option '--fast'; --help lists them\n"


def test_the_pack_is_missing(tmp_path):
    """A copy of the sources without what --pack adds."""
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "gpu-check.sh"
    script.write_bytes((ROOT / "scripts" / "gpu-check.sh").read_bytes())
    done = subprocess.run(["bash", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "make a pack with --pack where the compiler is, or give --launcher" in done.stderr
    done = subprocess.run(["bash", script, "--pack", tmp_path / "x.tar.gz"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "--pack needs build/bin/dualpipe-opt" in done.stderr

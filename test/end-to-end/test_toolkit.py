"""A CUDA toolkit that is too old, or broken, when the build is configured: what is left out is said.

Configures the two folders that look for a toolkit alone, without a compiler: their targets are
empty.
"""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(toolkit NONE)
function(dualpipe_add_library name)
  add_custom_target(${name})
endfunction()
function(dualpipe_note text)
  message(STATUS "${text}")
endfunction()
function(target_include_directories)
endfunction()
function(target_compile_definitions)
endfunction()
add_subdirectory(%s folder)
"""
COMPILER = """#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, %s" ;;
--list-gpu-code) echo sm_80 ;;
esac
"""


def configure(tmp_path, folder, *arguments):
    if not shutil.which("cmake"):
        pytest.skip("no cmake on this machine")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT % (ROOT / folder))
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", *arguments],
                          capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def make_compiler(tmp_path, release):
    compiler = tmp_path / "nvcc"
    compiler.write_text(COMPILER % release)
    compiler.chmod(0o755)
    return compiler


@pytest.mark.parametrize("release,text", [
    ("release 11.8, V11.8.89", "GPU kernels: left out ({} is of CUDA 11.8, expected 12.0 or later)"),
    ("release 12.0, V12.0.140", "GPU kernels: sm_80 and PTX, by {}"),
    ("release 13.1, V13.1.80", "GPU kernels: sm_80 and PTX, by {}")])
def test_an_old_compiler_is_left_out(tmp_path, release, text):
    compiler = make_compiler(tmp_path, release)
    code, output = configure(tmp_path, "runtime/kernels", f"-DDUALPIPE_NVCC={compiler}")
    assert code == 0, output
    assert text.format(compiler) in output


def test_without_a_compiler(tmp_path):
    code, output = configure(tmp_path, "runtime/kernels", "-DDUALPIPE_NVCC=OFF")
    assert code == 0, output
    assert "GPU kernels: left out (nvcc not found)" in output


def test_a_compiler_without_a_version(tmp_path):
    compiler = make_compiler(tmp_path, "damaged")
    code, output = configure(tmp_path, "runtime/kernels", f"-DDUALPIPE_NVCC={compiler}")
    assert code != 0
    assert f"'{compiler} --version' does not say a release (0)" in output
    assert "set DUALPIPE_NVCC to a working nvcc or to OFF" in output


@pytest.mark.parametrize("line,text", [
    ("#define CUDA_VERSION 11080",
     "prototypes not compared (the headers in {} are of CUDA_VERSION 11080, expected 12000 or later)"),
    ("// nothing", "prototypes not compared (the headers in {} say no CUDA_VERSION in cuda.h)"),
    ("#define CUDA_VERSION 12000", "prototypes compared with the headers in {}")])
def test_old_headers_are_left_out(tmp_path, line, text):
    headers = tmp_path / "include"
    headers.mkdir()
    for name in ["cudaTypedefs.h", "cublas_v2.h"]:
        (headers / name).touch()
    (headers / "cuda.h").write_text(line + "\n")
    code, output = configure(tmp_path, "runtime/device/cuda", f"-DCUDA_INCLUDE_DIR={headers}")
    assert code == 0, output
    assert text.format(headers) in output


def test_without_headers(tmp_path):
    code, output = configure(tmp_path, "runtime/device/cuda", "-DCUDA_INCLUDE_DIR=OFF")
    assert code == 0, output
    assert "prototypes not compared (no headers)" in output

"""What the end-to-end tests share: the built tools, and programs compiled once per size."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("DUALPIPE_BUILD_DIR", ROOT / "build")) / "bin"
EXAMPLES = ROOT / "examples"


class Tools:
    """Runs the tools and keeps compiled programs of a session."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = {}

    def run(self, tool, *arguments, timeout=120, env=None):
        return subprocess.run(
            [BIN / tool, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
            env={**os.environ, **(env or {})})

    def opt(self, *arguments, **options):
        return self.run("dualpipe-opt", *arguments, **options)

    def launch(self, *arguments, **options):
        return self.run("launcher", *arguments, **options)

    def compile(self, schedule, ranks, microbatches, *arguments):
        """The program file of an example; compiled on first use."""
        key = (schedule, ranks, microbatches, arguments)
        if key not in self.programs:
            path = self.folder / f"{len(self.programs)}-{schedule}-r{ranks}-m{microbatches}.dpx"
            done = self.opt(EXAMPLES / f"{schedule}.pipe", f"--ranks={ranks}",
                            f"--microbatches={microbatches}", *arguments, "-o", path)
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
            self.programs[key] = path
        return self.programs[key]


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    return Tools(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def kernels(tools):
    """What runs stage functions on a GPU, which only nvcc builds."""
    lines = tools.launch("--devices").stdout.splitlines()
    line, = (line for line in lines if line.startswith("kernels: "))
    if line.startswith("kernels: unusable"):
        pytest.skip(line)
    return line


@pytest.fixture(scope="session")
def plugin(tmp_path_factory):
    """The plug-in example, built outside the tree."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    shutil.copytree(EXAMPLES / "plugin", source)
    build = folder / "build"
    for command in (
        ["cmake", "-S", source, "-B", build, f"-DDUALPIPE_INCLUDE_DIR={ROOT / 'include'}"],
        ["cmake", "--build", build],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "libexample.so"

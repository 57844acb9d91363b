"""The files that a run writes: what is there is not lost, and what cannot be written is told before the run."""

import json
import os
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from conftest import BIN, EXAMPLES


@pytest.fixture
def program(tools, tmp_path):
    return shutil.copy(tools.compile("dualpipe", 4, 8), tmp_path / "a.dpx")


def refuse(tools, program, *arguments):
    """Before the run, and without a change in the folder."""
    folder = program.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = tools.launch(program, "--steps=2", *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    return done.stderr


@pytest.mark.parametrize("option", ["trace", "profile"])
@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_the_program_is_no_output(tools, program, option, link):
    output = program
    if link or option == "profile":
        output = program.with_name("other.json")
        (link or os.symlink)(program, output)
    assert refuse(tools, program, f"--{option}={output}") == (
        f"launcher: error: cannot write '{output}': it is the program that is to run, expected another file\n")


def test_the_plugin_is_no_output(tools, program, tmp_path):
    plugin = tmp_path / "model.so"
    plugin.write_text("no model")
    assert (f"cannot write '{plugin}': it is the model that is to run, expected another file"
            in refuse(tools, program, f"--trace={plugin}", f"--model={plugin}"))


@pytest.mark.parametrize("trace", ["x.json", "./x.json", "link.json"])
def test_one_file_for_two(tools, program, tmp_path, trace):
    os.symlink(tmp_path / "x.json", tmp_path / "link.json")
    if trace == "link.json":
        (tmp_path / "x.json").write_text("{}")
    assert (f"--trace and --profile are the same file '{tmp_path}/x.json', expected two"
            in refuse(tools, program, f"--trace={tmp_path}/{trace}", f"--profile={tmp_path}/x.json"))


def test_a_full_disk(program):
    """A result that nobody can read is none."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([BIN / "launcher", program, "--json"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "launcher: error: cannot write the output\n"


@pytest.mark.parametrize("option", ["trace", "profile"])
def test_what_is_no_file(tools, program, tmp_path, option):
    folder, pipe = tmp_path / "d.json", tmp_path / "p.json"
    folder.mkdir()
    os.mkfifo(pipe)
    for output, why in ((folder, "it is a directory, expected the name of a file"), (pipe, "not a regular file"),
                        (tmp_path / "no" / "x.json", "No such file or directory"),
                        (program / "x.json", "Not a directory")):
        assert refuse(tools, program, f"--{option}={output}") == f"launcher: error: cannot write '{output}': {why}\n"


@pytest.mark.parametrize("name", ["x", "x.txt", "a,b.json", "a=b.json"])
def test_names_that_cost_cannot_read(tools, program, tmp_path, name):
    assert refuse(tools, program, f"--profile={tmp_path / name}") == (
        f"launcher: error: --profile is '{tmp_path / name}', expected a name that ends in .json and has no ',' and "
        "no '=': --cost could not read it\n")


@pytest.mark.parametrize("option", ["--explain", "--profile=x.json"])
def test_pauses_are_not_measured(tools, program, option):
    assert (f"{option.split('=')[0]} does not apply with --jitter, whose pauses it would measure"
            in refuse(tools, program, "--jitter=1", option))


def test_files_are_replaced_as_a_whole(tools, program, tmp_path):
    trace, profile, link = tmp_path / "t.json", tmp_path / "p.json", tmp_path / "link.json"
    trace.write_text("old")
    profile.write_text("old")
    os.symlink(profile, link)
    done = tools.launch(program, "--model=noop", "--steps=2", f"--trace={trace}", f"--profile={link}")
    assert done.returncode == 0, done.stderr
    assert "traceEvents" in json.loads(trace.read_text())
    assert json.loads(profile.read_text())["format"] == "dualpipe-profile"
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.dpx", "link.json", "p.json", "t.json"]
    done = tools.launch(program, "--model=noop", "--steps=2", "--trace=/dev/null", "--profile=/dev/null")
    assert done.returncode == 0, done.stderr


def test_what_was_there_outlives_a_failed_run(tools, program, tmp_path):
    trace = tmp_path / "t.json"
    trace.write_text("old")
    done = tools.launch(program, "--model=wait", "--set=fwd=1000000", "--timeout=0.05", f"--trace={trace}")
    assert done.returncode == 1
    assert trace.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.dpx", "t.json"]


def test_names_that_are_no_utf8(tools, tmp_path):
    """A file may have any bytes in its name; JSON and XML may not."""
    schedule, program = (tmp_path / os.fsdecode(name) for name in (b"f\xff.pipe", b"f\xff.dpx"))
    shutil.copy(EXAMPLES / "1f1b.pipe", schedule)
    assert tools.opt(schedule, "--ranks=2", "--microbatches=4", "-o", program).returncode == 0
    trace, profile, picture = (tmp_path / name for name in ("t.json", "p.json", "x.out"))
    done = tools.launch(program, "--steps=2", "--json", "--explain", f"--trace={trace}", f"--profile={profile}",
                        "--set=hidden=8")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["memory"]) == 2
    assert "f\ufffd.pipe" in json.dumps(json.loads(trace.read_text("utf-8")), ensure_ascii=False)
    json.loads(profile.read_text("utf-8"))
    for emit in ("svg", "trace"):
        assert tools.opt(program, f"--emit={emit}", "-o", picture).returncode == 0
        assert picture.read_bytes().decode("utf-8")
        if emit == "svg":
            ElementTree.parse(picture)
    done = tools.launch(program, "--backend=sim", "--model=mlp", "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)

"""The plug-in example, built outside the tree, trains under a schedule and agrees with one device."""

import json

import pytest


@pytest.mark.parametrize("schedule,ranks,count", [
    ("dualpipe", 4, 8), ("dualpipe", 8, 20), ("dualpipev", 2, 5), ("1f1b", 4, 3)])
def test_check(tools, plugin, schedule, ranks, count):
    program = tools.compile(schedule, ranks, count)
    done = tools.launch(program, f"--model={plugin}", "--steps=3", "--lr=0.1", "--check", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["check"]["passed"] is True


def test_unknown_setting(tools, plugin):
    done = tools.launch(tools.compile("1f1b", 4, 3), f"--model={plugin}", "--set", "no-such=1")
    assert done.returncode == 1
    assert "no-such" in done.stderr


def test_not_a_plugin(tools, tmp_path):
    path = tmp_path / "libnothing.so"
    path.write_text("not a shared object")
    done = tools.launch(tools.compile("1f1b", 4, 3), f"--model={path}")
    assert done.returncode == 1
    assert "libnothing.so" in done.stderr

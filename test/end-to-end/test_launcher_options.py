"""Numbers on the launcher's command line: read as written, or an error that names the option."""

import pytest

WHOLE = "expected a whole number from"
NUMBER = "expected a number from"


@pytest.mark.parametrize("option,value,text", [
    ("steps", "0", WHOLE), ("steps", "-1", WHOLE), ("steps", "0x10", WHOLE), ("steps", "1e3", WHOLE),
    ("steps", "16777217", WHOLE), ("steps", "3 ", WHOLE),
    ("seed", "-1", WHOLE), ("seed", "18446744073709551616", WHOLE), ("seed", "seven", WHOLE),
    ("shuffle", "-1", WHOLE), ("jitter", "-1", WHOLE), ("jitter", "99999999999999999999", WHOLE),
    ("lr", "nan", NUMBER), ("lr", "inf", NUMBER), ("lr", "1e999", NUMBER), ("lr", "0.1x", NUMBER),
    ("timeout", "nan", NUMBER), ("timeout", "inf", NUMBER), ("timeout", "0", NUMBER),
    ("timeout", "-5", NUMBER)])
def test_bad_numbers_are_told_on(tools, option, value, text):
    done = tools.launch("x.dpx", f"--{option}={value}")
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"--{option}" in done.stderr
    assert text in done.stderr
    assert f"got '{value}'" in done.stderr


def test_a_leading_zero_is_no_octal(tools):
    program = tools.compile("1f1b", 2, 4)
    done = tools.launch(program, "--model=noop", "--steps=010")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 10


def test_the_largest_seed_is_kept(tools):
    program = tools.compile("1f1b", 2, 4)
    done = tools.launch(program, "--model=noop", "--seed=18446744073709551615", "--json")
    assert done.returncode == 0, done.stderr
    assert '"seed": 18446744073709551615' in done.stdout


def test_two_ways_to_choose_the_order(tools):
    done = tools.launch("x.dpx", "--jitter=1", "--shuffle=1")
    assert done.returncode == 1
    assert "--jitter excludes --shuffle" in done.stderr


@pytest.mark.parametrize("option", ["--shuffle=1", "--seed=1", "--lr=0.1", "--timeout=5", "--jitter=1", "--steps=2"])
def test_a_prediction_takes_nothing_of_a_run(tools, option):
    done = tools.launch("x.dpx", "--backend=sim", option)
    assert done.returncode == 1
    assert f"{option.split('=')[0]} does not apply with --backend=sim, which computes nothing" in done.stderr


@pytest.mark.parametrize("backend", ["cpu", "sim"])
def test_channels_fold_between_gpus_only(tools, backend):
    done = tools.launch("x.dpx", f"--backend={backend}", "--fold-channels")
    assert done.returncode == 1
    assert "--fold-channels does not apply without --backend=cuda or auto" in done.stderr

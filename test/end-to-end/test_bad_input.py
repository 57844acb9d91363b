"""Bad input: a clear error with its place, exit code 1, nothing half-written."""

import pytest

from conftest import EXAMPLES

MODEL = ["--model=mlp", "--set", "hidden=8", "--set", "seq=2", "--set", "batch=1"]


def fails(done, *texts):
    """The tool ended with code 1 and said all of this on the standard error."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    for text in texts:
        assert text in done.stderr
    assert "Stack dump" not in done.stderr


def compile_bad(tools, tmp_path, source, *arguments):
    path = tmp_path / "bad.pipe"
    path.write_text(source)
    out = tmp_path / "bad.dpx"
    done = tools.opt(path, *arguments, "-o", out)
    assert not out.exists()
    return done


def test_unknown_name(tools, tmp_path):
    source = (EXAMPLES / "1f1b.pipe").read_text().replace("pipeline main", "pipeline mian", 1)
    done = compile_bad(tools, tmp_path, source, "--ranks=2", "--microbatches=4")
    fails(done, "bad.pipe:", "error:", "did you mean 'mian'", "^")


def test_wrong_parameter(tools, tmp_path):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=8", "--microbatches=20", "--param", "chunks=2",
                     "-o", tmp_path / "x.dpx")
    fails(done, "dualpipe.pipe:", "chunks")
    assert not (tmp_path / "x.dpx").exists()


def test_odd_number_of_ranks_states_the_rule_and_the_nearest_legal_value(tools, tmp_path):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=7", "--microbatches=20", "-o", tmp_path / "x.dpx")
    fails(done, "dualpipe.pipe:", "needs an even number of ranks, got 7", "nearest legal", "6", "8")
    assert not (tmp_path / "x.dpx").exists()


@pytest.mark.parametrize("option,value", [("ranks", "0"), ("ranks", "-2"), ("microbatches", "many"),
                                          ("only-rank", "x")])
def test_options_that_are_no_numbers(tools, option, value):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", f"--{option}={value}", "--emit=order")
    fails(done, f"--{option} is '{value}', expected a whole number from")


def test_only_rank_out_of_range(tools, tmp_path):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=4", "--microbatches=8", "--only-rank=4",
                     "-o", tmp_path / "x.dpx")
    fails(done, "--only-rank=4 is out of range, the schedule has 4 ranks")


def test_param_without_value(tools):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=4", "--microbatches=8", "--param", "chunks",
                     "--emit=order")
    fails(done, "--param is 'chunks', expected NAME=VALUE with a whole number")


def test_bad_plan_cost(tools):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=4", "--microbatches=8", "--plan-cost=fwd=0",
                     "--emit=order")
    fails(done, "--plan-cost: cost 'fwd' is 0, expected more than 0")


def test_missing_ranks_says_which_option(tools):
    fails(tools.opt(EXAMPLES / "dualpipe.pipe", "--microbatches=8", "--emit=order"), "--ranks")


def test_program_on_the_terminal(tools):
    done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=4", "--microbatches=8", "--emit=program")
    fails(done, "a program file is binary: name it with -o FILE.dpx")


def test_emit_that_needs_a_schedule(tools, tmp_path):
    path = tmp_path / "x.mlir"
    path.write_text("module {}\n")
    fails(tools.opt(path, "--emit=torch-csv"), "is an MLIR module: this level of --emit starts from a schedule")


def test_missing_file(tools):
    fails(tools.opt("no-such-file.pipe", "--ranks=2", "--microbatches=4"), "no-such-file.pipe")
    fails(tools.launch("no-such-file.dpx"), "no-such-file.dpx")


def test_unwritable_output(tools, tmp_path):
    for output in (tmp_path / "no-such-folder" / "x.dpx", tmp_path / "no-such-folder" / "x.csv"):
        done = tools.opt(EXAMPLES / "dualpipe.pipe", "--ranks=4", "--microbatches=8", "-o", output)
        fails(done, "cannot write", str(output))


def test_truncated_program(tools, tmp_path):
    good = tools.compile("dualpipe", 4, 8).read_bytes()
    bad = tmp_path / "bad.dpx"
    for size in (0, 7, 40, len(good) // 2, len(good) - 1):
        bad.write_bytes(good[:size])
        fails(tools.launch(bad, *MODEL), "bad.dpx", "truncated")


def test_flipped_bits(tools, tmp_path):
    good = tools.compile("dualpipe", 4, 8).read_bytes()
    bad = tmp_path / "bad.dpx"
    for place in range(0, len(good), max(1, len(good) // 40)):
        flipped = bytearray(good)
        flipped[place] ^= 1 << (place % 8)
        bad.write_bytes(flipped)
        fails(tools.launch(bad, *MODEL), "bad.dpx")


def test_model_that_cannot_split_so(tools):
    done = tools.launch(tools.compile("dualpipe", 8, 20), *MODEL, "--set", "layers=12")
    fails(done, "cannot split 12 layers into 8 stages")


@pytest.mark.parametrize("setting,text", [("hiden=8", "hidden"), ("hidden=0", "hidden"), ("dtype=f16", "dtype"),
                                          ("hidden", "KEY=VALUE")])
def test_bad_model_settings(tools, setting, text):
    fails(tools.launch(tools.compile("dualpipe", 4, 8), "--model=mlp", "--set", setting), text)


def test_unknown_model(tools):
    fails(tools.launch(tools.compile("dualpipe", 4, 8), "--model=mpl"), "did you mean 'mlp'")


def test_output_that_is_the_input(tools, tmp_path):
    path = tmp_path / "x.pipe"
    path.write_text((EXAMPLES / "1f1b.pipe").read_text())
    done = tools.opt(path, "--ranks=2", "--microbatches=4", "-o", path)
    fails(done, "the output", "is the input")
    assert path.read_text() == (EXAMPLES / "1f1b.pipe").read_text()


def test_output_that_is_the_profile(tools, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("a profile")
    for costs in (path, f"{path},fwd=3"):
        done = tools.opt(EXAMPLES / "1f1b.pipe", "--ranks=2", "--microbatches=4", f"--cost={costs}", "--emit=svg",
                         "-o", path)
        fails(done, f"the output '{path}' is the profile of --cost")
        assert path.read_text() == "a profile"


def test_help_names_every_option_of_ours_and_no_code_generator(tools):
    done = tools.opt("--help")
    assert done.returncode == 0
    for option in ("--ranks", "--microbatches", "--param", "--schedule", "--forward-only", "--only-rank",
                   "--plan-cost", "--spares", "--emit", "--csv-dialect", "--legacy-csv", "--share", "--diff", "--pipe-assign-slots", "-o"):
        assert option in done.stdout
    assert "amdgpu" not in done.stdout

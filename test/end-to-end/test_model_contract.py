"""The model contract from the schedule to the program and the model that it runs."""

import json

import pytest

MLP = ["--model=mlp", "--set", "hidden=16", "--set", "seq=4", "--set", "batch=2"]

ZB_H1 = """pipe 1
schedule zb(ranks P, microbatches M) {{
  pipeline main {{ stages P; microbatches M; place s -> s }}
  {model}
  greedy {{
    prefer bwd_input, fwd, bwd_weight
    limit fwd..bwd_weight on r <= P
  }}
}}
"""
GROUPS = "group s -> if s == 0 or s == P - 1 then 0 else 1"
LEAN = "bwd_weight reads input, grad_output"
WIDE = ("bwd_input reads input, output, saved, grad_output, labels; "
        "bwd_weight reads saved, context, input, output, grad_output, labels")


def compile_zb(tools, folder, model, *arguments):
    folder.mkdir(exist_ok=True)
    (folder / "zb.pipe").write_text(ZB_H1.format(model=f"model {{ {model} }}" if model else ""))
    done = tools.opt(folder / "zb.pipe", "--ranks=4", "--microbatches=8", "-o", folder / "zb.dpx", *arguments)
    assert done.returncode == 0, done.stderr
    return folder / "zb.dpx"


def dump(tools, program):
    done = tools.launch(program, "--dump")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("model", [GROUPS, WIDE, f"{GROUPS}; {WIDE}"])
def test_mlp_runs_where_the_program_keeps_more(tools, tmp_path, model):
    """The same numbers as under the usual contract, which keeps less and has one size group."""
    results = []
    for name, stated in (("usual", ""), ("stated", model)):
        program = compile_zb(tools, tmp_path / name, stated)
        done = tools.launch(program, *MLP, "--steps=3", "--check", "--json", "--timeout=60")
        assert done.returncode == 0, done.stderr + done.stdout
        results.append(json.loads(done.stdout))
        assert results[-1]["check"]["passed"] is True
    assert results[0]["weights_digest"] == results[1]["weights_digest"]


def test_a_model_that_reads_more_is_refused(tools, tmp_path):
    program = compile_zb(tools, tmp_path, LEAN)
    done = tools.launch(program, *MLP)
    assert done.returncode == 1
    assert ("model 'mlp' reads the saved context in backward_weight, which the program does not keep until "
            "then; compile the schedule with the contract of the model") in done.stderr


@pytest.mark.parametrize("jitter", [[], ["--jitter=1"]])
def test_a_lean_contract_with_two_size_groups_runs(tools, tmp_path, jitter):
    program = compile_zb(tools, tmp_path, f"{GROUPS}; {LEAN}")
    done = tools.launch(program, "--model=noop", "--steps=2", "--check", "--timeout=60", *jitter)
    assert done.returncode == 0, done.stderr + done.stdout
    text = dump(tools, program)
    assert "contract: 1 components, 2 size groups" in text
    assert "backward_weight reads input, grad_output" in text


def test_every_level_and_every_form_keeps_the_contract(tools, tmp_path):
    program = compile_zb(tools, tmp_path, f"{GROUPS}; {LEAN}")
    sizes = ["--ranks=4", "--microbatches=8"]

    def convert(source, target, *arguments):
        done = tools.opt(tmp_path / source, "-o", tmp_path / target, *arguments)
        assert done.returncode == 0, done.stderr

    def streams(source):
        done = tools.opt(tmp_path / source, "--emit=streams")
        assert done.returncode == 0, done.stderr
        return done.stdout

    # Through the text of each level.
    convert("zb.pipe", "dataflow.mlir", "--emit=dataflow", *sizes)
    convert("dataflow.mlir", "streams.mlir", "--emit=streams")
    convert("streams.mlir", "again.dpx")
    expected = streams("zb.dpx")
    assert "model (bwd_weight reads [input, grad_output], groups [0, 1, 1, 0])" in expected
    assert streams("again.dpx") == expected
    # Through an explicit program, from the schedule and from the program file.
    for source, arguments in (("zb.pipe", sizes), ("zb.dpx", [])):
        convert(source, "explicit.pipe", "--emit=pipe", *arguments)
        text = (tmp_path / "explicit.pipe").read_text()
        assert "model { group s -> (0, 1, 1, 0)[s]; bwd_weight reads input, grad_output }" in text
        convert("explicit.pipe", "explicit.dpx", *sizes)
        assert streams("explicit.dpx") == expected
    # A file in PyTorch's grammar has none.
    convert("zb.pipe", "zb.csv", *sizes)
    convert("zb.csv", "csv.dpx")
    assert "stream.program 0" in streams("csv.dpx")
    assert "model (" not in streams("csv.dpx")


def test_the_usual_contract_said_aloud_changes_nothing(tools, tmp_path):
    usual = "group s -> 0; bwd reads grad_output, saved; bwd_input reads saved, grad_output; " \
            "bwd_weight reads context, saved"
    assert dump(tools, compile_zb(tools, tmp_path / "a", "")).replace("/a/", "/b/") == \
        dump(tools, compile_zb(tools, tmp_path / "b", usual))


def test_forward_only_has_no_use_for_the_contract(tools, tmp_path):
    program = compile_zb(tools, tmp_path, f"{GROUPS}; {LEAN}", "--forward-only")
    done = tools.launch(program, *MLP, "--check", "--timeout=60")
    assert done.returncode == 0, done.stderr + done.stdout


def test_one_rank_alone_is_compiled_as_with_the_others(tools, tmp_path):
    compile_zb(tools, tmp_path, f"{GROUPS}; {LEAN}")
    sizes = ["--ranks=4", "--microbatches=8", "--emit=streams"]
    together = tools.opt(tmp_path / "zb.pipe", *sizes)
    alone = tools.opt(tmp_path / "zb.pipe", *sizes, "--only-rank=2")
    assert together.returncode == alone.returncode == 0, together.stderr + alone.stderr
    assert "stream.program 2" in alone.stdout
    [body] = [part for part in together.stdout.split("  stream.program ") if part.startswith("2 ")]
    assert body in alone.stdout

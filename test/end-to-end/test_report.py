"""Reports from the command line: the numbers of a program before it runs."""

import json

import pytest

from conftest import EXAMPLES, ROOT

ONES = "--cost=fwd=1,bwd_input=1,bwd_weight=1,fused=3,transfer=0"


def pipe(name, ranks, microbatches, *arguments):
    return [EXAMPLES / f"{name}.pipe", f"--ranks={ranks}", f"--microbatches={microbatches}", *arguments]


def good(done):
    assert done.returncode == 0, done.stderr
    return done


def report(tools, *arguments):
    return json.loads(good(tools.opt(*arguments, "--emit=report", "--format=json")).stdout)


def test_the_json_has_what_its_page_says(tools):
    found = report(tools, *pipe("dualpipe", 8, 20, ONES))
    assert found["schedule"] == "dualpipe"
    assert found["ranks"] == 8
    assert found["microbatches"] == 20
    assert found["makespan"] == 66
    assert found["ideal"] == 60
    assert found["bubble"]["per_rank"] == [6] * 8
    assert found["bubble"]["max"] == 6
    assert found["peak_activations"] == [9] * 8
    assert found["weight_queue"] == [1, 2, 3, 4, 4, 3, 2, 1]
    assert found["sends"] == [20, 40, 40, 40, 40, 40, 40, 20]
    assert found["pair_start"] == "joint"
    assert found["formula"] == {
        "name": "DualPipe", "bubble": 6, "bubble_formula": "(PP/2 - 1)(F&B + B - 3W)",
        "activations": 9, "activations_formula": "PP + 1"}
    assert sum(share["time"] for share in found["critical_path"].values()) == 66
    page = (ROOT / "docs" / "reports.md").read_text()
    for name in [*found, *found["bubble"], *found["causes"][0], *found["longest_waits"][0], *found["formula"]]:
        assert f"`{name}`" in page, f"docs/reports.md does not explain {name}"


@pytest.mark.parametrize("name,rate", [("1f1b", 0.2431), ("zb-h1", 0.1585), ("zb-h2", 0.1083)])
def test_the_rate_is_that_of_the_zero_bubble_paper(tools, name, rate):
    costs = "--cost=fwd=18.522,bwd_input=18.086,bwd_weight=9.337,transfer=0.601"
    assert round(report(tools, *pipe(name, 8, 24, costs))["bubble"]["rate"], 4) == rate


def test_parts_of_the_bubble_add_up(tools):
    costs = "--cost=fwd=1,bwd_input=1.5,bwd_weight=0.5,transfer=0.25,reduce=3,step=1"
    found = report(tools, *pipe("dualpipe", 4, 10, costs))
    for bubble, cause in zip(found["bubble"]["per_rank"], found["causes"], strict=True):
        own = sum(cause[name] for name in ("warm_up", "drain", "slots", "reductions", "pairs"))
        assert own + sum(peer["time"] for peer in cause["peers"]) == pytest.approx(bubble)


def test_waits_name_the_line(tools):
    found = report(tools, *pipe("1f1b", 4, 8))
    lines = (EXAMPLES / "1f1b.pipe").read_text().splitlines()
    assert found["longest_waits"]
    for wait in found["longest_waits"]:
        file, line, column = wait["place"].rsplit(":", 2)
        assert file.endswith("1f1b.pipe")
        assert lines[int(line) - 1][int(column) - 1:].startswith(wait["op"])


def test_every_input_gives_the_same_report(tools, tmp_path):
    arguments = pipe("zb-h1", 4, 8)
    program = tmp_path / "x.dpx"
    module = tmp_path / "x.mlir"
    cells = tmp_path / "x.csv"
    good(tools.opt(*arguments, "-o", program))
    good(tools.opt(*arguments, "--emit=streams", "-o", module))
    good(tools.opt(*arguments, "-o", cells))
    expected = report(tools, *arguments)
    assert report(tools, program) == expected
    for other in (module, cells):
        found = report(tools, other)
        for name in ("makespan", "ideal", "bubble", "causes", "peak_activations", "weight_queue", "sends"):
            assert found[name] == expected[name], f"{name} of {other.name}"


def test_costs_come_from_the_plan_unless_given(tools, tmp_path):
    text = (EXAMPLES / "1f1b.pipe").read_text()
    own = tmp_path / "own.pipe"
    own.write_text(text.replace("  pipeline", "  cost { fwd 2 }\n  pipeline", 1))
    sizes = ["--ranks=2", "--microbatches=4"]
    assert report(tools, own, *sizes)["costs"]["fwd"] == 2
    assert report(tools, own, *sizes, "--plan-cost=fwd=3")["costs"]["fwd"] == 3
    assert report(tools, own, *sizes, "--cost=fwd=4,transfer=0.5")["costs"] == {
        "fwd": 4, "bwd_input": 1, "bwd_weight": 1, "transfer": 0.5, "start": "joint"}


def test_the_launcher_predicts_the_same(tools):
    program = tools.compile("dualpipe", 4, 10)
    costs = "--cost=fwd=1,bwd_input=1.5,transfer=0.25"
    done = good(tools.launch(program, "--backend=sim", costs, "--json"))
    assert json.loads(done.stdout) == report(tools, program, costs)
    text = good(tools.launch(program, "--backend=sim", costs)).stdout
    assert text == good(tools.opt(program, costs, "--emit=report")).stdout
    assert "makespan" in text and "worst rank's bubble" in text


@pytest.mark.parametrize("arguments,message", [
    (["--cost=fwd=2"], "--cost does not apply without --backend=sim"),
    (["--backend=sim", "--check"], "--check does not apply with --backend=sim, which computes nothing"),
    (["--backend=sim", "--cost=fwd=-1"], "--cost: cost 'fwd' is '-1', expected a decimal number"),
    (["--backend=sim", "--cost=fwd[7]=1"], "cost 'fwd[7]' names no stage, expected one below 4")])
def test_the_launcher_tells_on_options(tools, arguments, message):
    done = tools.launch(tools.compile("dualpipe", 4, 10), *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"launcher: error: {message}" in done.stderr


def test_a_table_compares(tools):
    inputs = [EXAMPLES / f"{name}.pipe" for name in ("1f1b", "interleaved", "zb-h1", "dualpipe")]
    sizes = ["--ranks=4", "--microbatches=8"]
    rows = good(tools.opt("--compare", *inputs, *sizes)).stdout.splitlines()
    assert [row.split()[-1] for row in rows] == ["schedule", "one_f_one_b", "interleaved", "zb_h1", "dualpipe"]
    # What a rank holds takes the same time however many stages it is cut into.
    assert [row.split()[:3] for row in rows[1:]] == [
        ["33", "24", "9"], ["28.5", "24", "4.5"], ["27", "24", "3"], ["26", "24", "2"]]
    reports = json.loads(good(tools.opt(*sizes, "--format=json", "--compare", *inputs)).stdout)
    assert [found["makespan"] for found in reports] == [33, 28.5, 27, 26]


def test_a_bubble_of_more_than_half_is_told(tools):
    done = good(tools.opt(*pipe("gpipe", 4, 2, "--emit=report")))
    assert "warning: a rank computes for less than half of the time: its bubble is 9 of 15; more " \
           "micro-batches make it a smaller part" in done.stderr
    assert "gpipe.pipe" in done.stderr
    assert good(tools.opt(*pipe("gpipe", 4, 8, "--emit=report"))).stderr == ""


@pytest.mark.parametrize("arguments,message", [
    (["--emit=report", "--cost=fwd=nan"],
     "--cost: cost 'fwd' is 'nan', expected a decimal number with at most six places"),
    (["--emit=report", "--cost=speed=1"], "--cost: unknown cost 'speed', expected fwd, bwd"),
    (["--emit=report", "--cost=fwd[9]=1"], "cost 'fwd[9]' names no stage, expected one below 4"),
    (["--emit=report", "--only-rank=0"],
     "--only-rank does not apply with --emit=report, svg, html or trace: a prediction needs all ranks"),
    (["--emit=streams", "--cost=fwd=1"], "--cost does not apply without --emit=report, svg, html or trace, or --compare"),
    (["--format=json"], "--format does not apply without --emit=report or --compare"),
    (["--format-pipe", "--cost=fwd=1"], "--cost does not apply with --format-pipe"),
    (["--diff=x.csv", "--cost=fwd=1"], "--cost does not apply without --emit=report, svg, html or trace, or --compare")])
def test_bad_options_are_told(tools, arguments, message):
    sizes = [] if "--format-pipe" in arguments else ["--ranks=4", "--microbatches=8"]
    done = tools.opt(EXAMPLES / "1f1b.pipe", *sizes, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert message in done.stderr


@pytest.mark.parametrize("arguments,message", [
    ([], "--compare names fewer than two inputs: --compare A B ..."),
    (["x.pipe"], "--compare names fewer than two inputs: --compare A B ..."),
    (["x.pipe", "y.pipe", "--emit=order"], "--emit does not apply with --compare"),
    (["x.mlir", "y.mlir"], "'x.mlir' is an MLIR module, expected a .pipe, .csv or .dpx file")])
def test_bad_comparisons_are_told(tools, tmp_path, arguments, message):
    for name in ("x.pipe", "y.pipe", "x.mlir", "y.mlir"):
        (tmp_path / name).write_text("module {}\n")
    files = [tmp_path / name if not name.startswith("--") else name for name in arguments]
    done = tools.opt("--compare", *files)
    assert done.returncode == 1
    assert done.stdout == ""
    assert message.replace("'x.mlir'", f"'{tmp_path / 'x.mlir'}'") in done.stderr


def test_a_program_without_some_ranks_cannot_be_predicted(tools, tmp_path):
    part = tmp_path / "part.dpx"
    good(tools.opt(*pipe("1f1b", 4, 8, "--only-rank=1", "-o", part)))
    done = tools.opt(part, "--emit=report")
    assert done.returncode == 1
    assert f"{part}: the program has 1 of 4 ranks: a simulation needs all" in done.stderr


def test_results_come_no_later_than_their_pair(tools):
    """Times past its end are told as what they are taken for."""
    program = tools.compile("dualpipe", 4, 8)
    texts = [tools.launch(program, "--backend=sim", f"--cost=fused=2,forward_done={late},backward_done={late}").stdout
             for late in (2, 99)]
    for text, late in zip(texts, (2, 99)):
        assert (f"forwards have their results {late} after that, backwards {late} after that, none later than the "
                "pair ends") in text
    assert texts[0].replace(" 2 after", " 99 after").replace("_done 2,", "_done 99,") == texts[1]


def test_times_of_single_stages_are_not_compared_over_other_stages(tools):
    inputs = [EXAMPLES / "1f1b.pipe", EXAMPLES / "interleaved.pipe", "--ranks=4", "--microbatches=8"]
    done = tools.opt("--compare", *inputs, "--cost=fwd[0]=2")
    assert done.returncode == 1
    assert "--cost=fwd[0]=2 has times of single stages, and 'one_f_one_b' has 4 stages, 'interleaved' 8" in done.stderr
    good(tools.opt("--compare", *inputs, "--cost=fwd=2"))
    good(tools.opt("--compare", EXAMPLES / "1f1b.pipe", EXAMPLES / "zb-h1.pipe", *inputs[2:], "--cost=fwd[0]=2"))


def test_the_ending_says_how_a_report_is_written(tools, tmp_path):
    arguments = pipe("1f1b", 2, 4, "--emit=report")
    for name, is_json in [("r.json", True), ("r.txt", False)]:
        good(tools.opt(*arguments, "-o", tmp_path / name))
        assert (tmp_path / name).read_text().startswith("{") == is_json
    good(tools.opt(*arguments, "--format=text", "-o", tmp_path / "t.json"))
    assert (tmp_path / "t.json").read_text().startswith("one_f_one_b: ")

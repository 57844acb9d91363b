"""Charts of --emit=svg: that they are SVG, and that what they show is the run."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from conftest import EXAMPLES, ROOT

SVG = "{http://www.w3.org/2000/svg}"
KINDS = {"f": "fwd", "b": "bwd", "i": "bwd_input", "w": "bwd_weight"}


def pipe(name, ranks, microbatches, *arguments):
    return [EXAMPLES / f"{name}.pipe", f"--ranks={ranks}", f"--microbatches={microbatches}", *arguments]


def good(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def draw(tools, *arguments):
    return good(tools.opt(*arguments, "--emit=svg"))


def report(tools, *arguments):
    return json.loads(good(tools.opt(*arguments, "--emit=report", "--format=json")))


def bars(root):
    """(kind, tooltip) of each bar."""
    for rect in root.iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            yield rect.get("class"), title.text, rect


def texts(root):
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("size", [("dualpipe", 8, 20), ("zb-h1", 4, 8), ("dualpipev", 4, 10), ("interleaved", 4, 8),
                                  ("1f1b", 4, 8), ("chimera", 4, 4), ("hanayo", 4, 4), ("gpipe", 2, 3)],
                         ids=lambda size: size[0])
def test_every_op_is_a_bar_where_it_runs(tools, size):
    arguments = pipe(*size, "--cost=fwd=1,bwd_input=1.25,bwd_weight=0.75,transfer=0.5")
    root = ET.fromstring(draw(tools, *arguments))
    trace = json.loads(good(tools.opt(*arguments, "--emit=trace")))
    expected = Counter()
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in KINDS.values():
            start, end = event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000
            expected[event["cat"], event["args"]["microbatch"], event["args"]["stage"], event["pid"] - 1,
                     f"{start:g}", f"{end:g}", event["args"]["place"]] += 1
    names = {"forward": "fwd", "backward": "bwd", "input half": "bwd_input", "weight half": "bwd_weight"}
    found = Counter()
    for kind, title, _ in bars(root):
        match = re.fullmatch(r"(.+) of micro-batch (\d+), stage (\d+), rank (\d+): (\S+) to (\S+)\n(.+)", title)
        assert names[match[1]] == KINDS[kind[0]]
        found[names[match[1]], int(match[2]), int(match[3]), int(match[4]), match[5], match[6], match[7]] += 1
    assert found == expected


def test_places_follow_the_times(tools):
    """All bars have one scale, and nothing sticks out."""
    root = ET.fromstring(draw(tools, *pipe("dualpipe", 8, 20)))
    scales = set()
    for _, title, rect in bars(root):
        start, end = map(float, re.search(r": (\S+) to (\S+)\n", title).groups())
        x, width = float(rect.get("x")) - 0.5, float(rect.get("width")) + 1
        scales.add(round(width / (end - start), 1))
        assert x == pytest.approx(start * width / (end - start), abs=0.02 * (start + 1))
        assert 0 <= float(rect.get("y")) and float(rect.get("height")) >= 9
    assert len(scales) == 1
    _, _, width, height = map(float, root.get("viewBox").split())
    row = max(float(rect.get("x")) + float(rect.get("width")) for _, _, rect in bars(root))
    assert row + 62 <= width <= row + 62 + 40
    assert 300 < height < 480


def test_what_is_written_on_it(tools):
    arguments = pipe("dualpipe", 8, 20)
    shown = texts(ET.fromstring(draw(tools, *arguments)))
    found = report(tools, *arguments)
    assert "dualpipe: 8 ranks, 8 stages, 20 micro-batches" in shown
    assert f'makespan {found["makespan"]}, ideal {found["ideal"]}, worst rank\'s bubble: ' \
           f'{found["bubble"]["max"]} (9.1 %)' in shown
    for label in ("forward", "backward", "input half", "weight half", "fused: both at once", "down", "up", "idle",
                  "warm-up", "zero bubble", "steady", "drain", "weights", *(f"rank {rank}" for rank in range(8))):
        assert label in shown
    # A number for each op: 160 forwards, 160 backwards or input halves, and the weight halves.
    numbers = [text for text in shown if text.isdigit()]
    ops = sum(1 for _ in bars(ET.fromstring(draw(tools, *arguments))))
    ticks = len([text for text in shown if text.isdigit() and int(text) % 5 == 0 and int(text) > 19])
    assert len(numbers) == ops + 14 and ticks >= 10


def test_numbers_shrink_and_go_before_bars_do(tools):
    few = ET.fromstring(draw(tools, *pipe("1f1b", 4, 8)))
    many = draw(tools, *pipe("1f1b", 64, 256))
    root = ET.fromstring(many)
    assert any(text.isdigit() for text in texts(few))
    assert not list(bars(root))  # paths instead
    assert all(int(text) % 10 == 0 for text in texts(root) if text.isdigit())  # the axis
    assert len(list(root.iter(f"{SVG}path"))) > 2 * 64
    assert "rank 63" not in texts(root) or "rank 62" in texts(root)


def test_large_charts_stay_small(tools):
    text = draw(tools, *pipe("dualpipe", 64, 512))
    ET.fromstring(text)
    assert len(text) < 1_000_000
    assert len(draw(tools, *pipe("dualpipe", 8, 20))) < 120_000


def test_sampled_bars_cover_their_rows(tools):
    """Where bars are narrower than a pixel, lines of a row still reach its end."""
    text = draw(tools, *pipe("gpipe", 4, 4000))
    root = ET.fromstring(text)
    assert len(text) < 400_000
    reach = []
    for path in root.iter(f"{SVG}path"):
        if (path.get("class") or "")[0] in KINDS:
            numbers = re.findall(r"[Mmh]-?[\d.]+", path.get("d"))
            reach.append(sum(float(number[1:]) for number in numbers))
    assert max(reach) == pytest.approx(2400, abs=2)


def test_themes(tools):
    arguments = pipe("1f1b", 2, 4)
    auto, light, dark = (draw(tools, *arguments, f"--theme={theme}") for theme in ("auto", "light", "dark"))
    assert draw(tools, *arguments) == auto
    assert "prefers-color-scheme:dark" in auto
    assert "prefers-color-scheme" not in light + dark
    assert ".bg{fill:#ffffff}" in light and ".bg{fill:#15181c}" in dark


def luminance(colour):
    """Of a colour as it prints in grey (CIE L*)."""
    linear = [(value / 255) / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
              for value in (int(colour[i:i + 2], 16) for i in (1, 3, 5))]
    y = sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722)))
    return 116 * y ** (1 / 3) - 16


def test_kinds_differ_in_grey(tools):
    """Lightness tells the kinds apart, whatever the direction; numbers have contrast."""
    style = draw(tools, *pipe("dualpipe", 8, 20))
    by_kind = {}
    for kind, _, colour in re.findall(r"\.([fbiw])(\d)\{fill:(#\w{6})\}", style):
        by_kind.setdefault(kind, []).append(luminance(colour))
    assert sorted(by_kind) == ["b", "f", "i", "w"]
    for values in by_kind.values():
        assert max(values) - min(values) < 6
    order = sorted(by_kind.values())
    for darker, lighter in zip(order, order[1:]):
        assert min(lighter) - max(darker) > 8


def test_the_ending_says_what_to_write(tools, tmp_path):
    arguments = pipe("1f1b", 2, 4)
    chart = tmp_path / "x.svg"
    page = tmp_path / "x.html"
    good(tools.opt(*arguments, "-o", chart))
    good(tools.opt(*arguments, "-o", page))
    assert chart.read_text() == draw(tools, *arguments)
    assert page.read_text() == good(tools.opt(*arguments, "--emit=html"))
    assert page.read_text().startswith("<!doctype html>")


def test_programs_and_modules_are_drawn_too(tools, tmp_path):
    arguments = pipe("zb-h1", 4, 8)
    module = tmp_path / "x.mlir"
    good(tools.opt(*arguments, "--emit=streams", "-o", module))
    program = tools.compile("zb-h1", 4, 8)
    for what in ("svg", "html"):
        expected = good(tools.opt(*arguments, f"--emit={what}"))
        assert good(tools.opt(program, f"--emit={what}")) == expected
        assert good(tools.opt(module, f"--emit={what}"))


@pytest.mark.parametrize("arguments,message", [
    (["--emit=svg", "--cost=fwd=-1"], "--cost: cost 'fwd' is '-1', expected a decimal number"),
    (["--emit=html", "--cost=fwd[9]=1"], "cost 'fwd[9]' names no stage, expected one below 4"),
    (["--emit=svg", "--only-rank=0"],
     "--only-rank does not apply with --emit=report, svg, html or trace: a prediction needs all ranks"),
    (["--emit=svg", "--format=json"], "--format does not apply without --emit=report or --compare"),
    (["--emit=streams", "--theme=dark"], "--theme does not apply without --emit=svg or html"),
    (["--emit=trace", "--theme=dark"], "--theme does not apply without --emit=svg or html"),
    (["--emit=html", "--cost=cores=2"],
     "a page's own model has no shared cores and links: expected no costs 'cores' and 'links', or --emit=svg or trace"),
    (["--emit=html", "--cost=fwd=900000000"],
     "is too long for a page's numbers, expected times in a larger unit")])
def test_what_cannot_be_drawn(tools, arguments, message):
    microbatches = 16 if "fwd=900000000" in arguments[-1] else 8
    done = tools.opt(*pipe("1f1b", 4, microbatches), *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert message in done.stderr


def test_the_formatter_has_no_theme(tools):
    done = tools.opt(EXAMPLES / "1f1b.pipe", "--format-pipe", "--theme=dark")
    assert done.returncode == 1
    assert "--theme does not apply with --format-pipe" in done.stderr


@pytest.mark.parametrize("what", ["svg", "html", "trace"])
def test_a_program_of_one_rank_cannot_be_drawn(tools, what):
    done = tools.opt(tools.compile("1f1b", 4, 8, "--only-rank=1"), f"--emit={what}")
    assert done.returncode == 1
    assert "the program has 1 of 4 ranks: a simulation needs all" in done.stderr


def test_an_illegal_schedule_is_not_drawn(tools, tmp_path):
    chart = tmp_path / "x.svg"
    done = tools.opt(*pipe("dualpipe", 7, 20), "-o", chart)
    assert done.returncode == 1
    assert "needs an even number of ranks, got 7" in done.stderr
    assert not chart.exists()


def test_names_are_escaped(tools, tmp_path):
    """A file's name goes into texts of XML and HTML, and into a script's data."""
    source = tmp_path / 'a<b>&"c.pipe'
    source.write_text((EXAMPLES / "1f1b.pipe").read_text())
    arguments = [source, "--ranks=2", "--microbatches=4"]
    root = ET.fromstring(draw(tools, *arguments))
    assert any('a<b>&"c.pipe:' in title for _, title, _ in bars(root))
    page = good(tools.opt(*arguments, "--emit=html"))
    assert "a<b>" not in page
    facts = re.search(r'id="facts">(.*?)</script>', page, re.S)[1]
    assert json.loads(facts)["files"][0].endswith('a<b>&"c.pipe')


def test_what_ops_take_fits_on_the_chart(tools):
    costs = ",".join(f"{name}[{stage}]=1.12345{1 + stage}" for name in ("fwd", "bwd_input", "bwd_weight", "step")
                     for stage in range(4))
    root = ET.fromstring(draw(tools, *pipe("1f1b", 4, 8, f"--cost={costs}")))
    lines = [text for text in root.iter(f"{SVG}text") if text.get("class") == "faint" and float(text.get("y")) < 130]
    assert len(lines) > 1
    assert "fwd[0] 1.123451" in lines[0].text and "step[3] 1.123454" in lines[-1].text
    width = float(root.get("viewBox").split()[2])
    assert all(62 + 5.6 * len(line.text) <= width for line in lines)
    legend = next(float(text.get("y")) for text in root.iter(f"{SVG}text") if text.text == "forward")
    assert legend > max(float(line.get("y")) for line in lines) + 10

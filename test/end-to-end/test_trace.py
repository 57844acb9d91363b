"""Traces for Perfetto: the format, and that what stands in them is the run."""

import json
from collections import defaultdict

import pytest

from conftest import EXAMPLES

COSTS = "--cost=fwd=1,bwd_input=1.5,bwd_weight=0.5,transfer=0.25"
CASES = [
    ("dualpipe", 4, 10, COSTS),
    ("dualpipe", 4, 10, COSTS + ",fused=2.75,start=separate"),
    ("dualpipe", 4, 10, "--cost=transfer=2,occupancy=0.125,reduce=1,step=0.5"),
    ("zb-h1", 4, 8, COSTS),
    ("dualpipev", 2, 6, COSTS),
    ("interleaved", 2, 4, "--cost=fwd[1]=2.000001"),
    ("1f1b", 4, 8, "--cost=transfer=0"),
]


def pipe(name, ranks, microbatches, *arguments):
    return [EXAMPLES / f"{name}.pipe", f"--ranks={ranks}", f"--microbatches={microbatches}", *arguments]


def emit(tools, what, *arguments):
    done = tools.opt(*arguments, *what)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[3][7:]}")
def case(request, tools):
    arguments = pipe(*request.param)
    return emit(tools, ["--emit=trace"], *arguments), emit(tools, ["--emit=report", "--format=json"], *arguments)


def slices(trace, categories=None):
    return [event for event in trace["traceEvents"]
            if event["ph"] == "X" and (categories is None or event["cat"] in categories)]


def by_track(events):
    tracks = defaultdict(list)
    for event in events:
        tracks[event["tid"]].append(event)
    return tracks


def test_events_are_what_the_format_knows(case):
    trace, report = case
    assert trace["displayTimeUnit"] == "ms"
    assert trace["otherData"]["schedule"] == report["schedule"]
    kinds = {event["ph"] for event in trace["traceEvents"]}
    assert kinds == {"M", "X", "C", "s", "f"}
    for event in trace["traceEvents"]:
        assert event["pid"] in range(1, report["ranks"] + 1)
        if event["ph"] != "M":
            assert event["ts"] >= 0


def test_events_are_sorted_and_names_come_first(case):
    events = case[0]["traceEvents"]
    first = next(i for i, event in enumerate(events) if event["ph"] != "M")
    assert all(event["ph"] != "M" for event in events[first:])
    times = [event["ts"] for event in events[first:]]
    assert times == sorted(times)


def test_every_rank_and_every_track_has_one_name(case):
    trace, report = case
    named = [(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"]
    assert len(named) == len(set(named)) == len({track for _, track in named})
    assert {(event["pid"], event["tid"]) for event in slices(trace)} <= set(named)
    ranks = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    assert ranks == [f"rank {rank}" for rank in range(report["ranks"])]
    streams = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert {"compute", "send act to 1", "recv grad from 1"} <= streams


def test_slices_of_a_track_follow_each_other_or_lie_inside_each_other(case):
    for track in by_track(slices(case[0])).values():
        open_until = []
        for event in track:
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"] + 1e-9:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-9, event
            open_until.append(end)


def test_lengths_are_those_of_the_simulation(case):
    """A unit of the costs is a millisecond, a thousand of the format's units."""
    trace, report = case
    costs = report["costs"]
    costs.setdefault("bwd", costs["bwd_input"] + costs["bwd_weight"])
    assert max(event["ts"] + event["dur"] for event in slices(trace)) == pytest.approx(1000 * report["makespan"])
    members = {"fwd", "bwd", "bwd_input", "bwd_weight"}
    pairs = [(event["tid"], event["ts"], event["ts"] + event["dur"]) for event in slices(trace, {"fused"})]
    for event in slices(trace, members):
        alone = not any(begin <= event["ts"] < end for _, begin, end in pairs)
        given = costs.get(f'{event["cat"]}[{event["args"]["stage"]}]', costs.get(event["cat"]))
        if alone:
            assert event["dur"] == pytest.approx(1000 * given)
    for rank, busy in enumerate(report["busy"]):
        outer = [event for event in slices(trace, members | {"fused", "step"}) if event["pid"] == rank + 1]
        if report["pair_start"] == "joint":
            inside = [event for event in outer if event["cat"] in members and any(
                begin <= event["ts"] < end for track, begin, end in pairs if _of_rank(trace, track) == rank)]
            total = sum(event["dur"] for event in outer) - sum(event["dur"] for event in inside)
            assert total == pytest.approx(1000 * busy)


def _of_rank(trace, track):
    return next(event["pid"] for event in trace["traceEvents"] if event["tid"] == track and event["ph"] == "M") - 1


def test_every_op_is_there_once(case):
    trace, report = case
    ops = [(event["cat"], event["args"]["stage"], event["args"]["microbatch"])
           for event in slices(trace, {"fwd", "bwd", "bwd_input", "bwd_weight"})]
    assert len(ops) == len(set(ops))
    for rank in range(report["ranks"]):
        sends = [event for event in slices(trace, {"send act", "send grad"}) if event["pid"] == rank + 1]
        assert len(sends) == report["sends"][rank]


def test_flows_go_from_sends_to_receives(case):
    trace, report = case
    starts = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "s"}
    ends = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == sum(report["sends"])
    found = defaultdict(list)
    for event in slices(trace, {"send act", "send grad", "recv act", "recv grad"}):
        found[event["tid"]].append(event)

    def enclosing(flow, what):
        return [event for event in found[flow["tid"]]
                if event["ts"] <= flow["ts"] <= event["ts"] + event["dur"] and event["cat"].startswith(what)]

    used = set()
    for number, start in starts.items():
        end = ends[number]
        assert end["bp"] == "e"
        assert end["ts"] >= start["ts"]
        pairs = {(send["args"]["stage"], send["args"]["microbatch"], send["cat"][5:])
                 for send in enclosing(start, "send")}
        pairs &= {(recv["args"]["stage"], recv["args"]["microbatch"], recv["cat"][5:])
                  for recv in enclosing(end, "recv")}
        assert pairs
        used |= pairs
    assert len(used) == len(starts)


def test_counters_have_the_peaks_of_the_report(case):
    trace, report = case
    for rank, peak in enumerate(report["peak_activations"]):
        counts = [event["args"]["micro-batches"] for event in trace["traceEvents"]
                  if event["ph"] == "C" and event["name"] == "activations" and event["pid"] == rank + 1]
        if report["pair_start"] == "joint":
            assert max(counts) == peak
        assert counts[-1] == 0


def test_slots_in_use_are_never_more_than_there_are(tools):
    program = tools.compile("dualpipe", 4, 10)
    trace = emit(tools, ["--emit=trace"], program)
    dump = tools.launch(program, "--dump").stdout
    rank, slots = -1, {}
    for line in dump.splitlines():
        words = line.split()
        if line.startswith("rank "):
            rank += 1
        elif words[:1] == ["slots"]:
            slots[rank, words[1]] = int(words[5].rstrip(","))
    peaks = defaultdict(int)
    for event in trace["traceEvents"]:
        if event["ph"] == "C" and event["name"] == "slots in use":
            for kind, count in event["args"].items():
                assert 0 <= count <= slots[event["pid"] - 1, kind]
                peaks[kind] = max(peaks[kind], count)
    assert all(peaks.values())


def test_places_are_lines_of_the_schedule(tools):
    trace = emit(tools, ["--emit=trace"], *pipe("1f1b", 2, 4))
    lines = (EXAMPLES / "1f1b.pipe").read_text().splitlines()
    for event in slices(trace, {"fwd", "bwd"}):
        _, line, column = event["args"]["place"].rsplit(":", 2)
        assert lines[int(line) - 1][int(column) - 1:].startswith(event["cat"])


def test_every_input_gives_the_same_trace(tools, tmp_path):
    arguments = pipe("zb-h1", 4, 8)
    module = tmp_path / "x.mlir"
    assert tools.opt(*arguments, "--emit=streams", "-o", module).returncode == 0
    program = tools.compile("zb-h1", 4, 8)
    expected = emit(tools, ["--emit=trace"], *arguments)
    assert emit(tools, ["--emit=trace"], program) == expected
    found = emit(tools, ["--emit=trace"], module)
    assert len(found["traceEvents"]) == len(expected["traceEvents"])

"""Schedules to PyTorch's grammar and back, and comparing any two inputs."""

import json
import random
import re

import pytest

from conftest import EXAMPLES, ROOT

REFERENCE = ROOT / "test" / "reference" / "orders"
MODEL = ["--model=mlp", "--set", "hidden=8", "--set", "seq=2", "--set", "batch=1"]
# A file in PyTorch's grammar has no costs: all compilations are given the same.
COSTS = "--plan-cost=fwd=1,bwd=2,bwd_input=1,bwd_weight=1,fused=3,transfer=0"
SIZES = [(4, 10), (4, 8), (2, 4), (3, 6)]


def good(done):
    assert done.returncode == 0, done.stderr
    return done


def write(tools, schedule, sizes, output, *arguments):
    return tools.opt(EXAMPLES / f"{schedule}.pipe", f"--ranks={sizes[0]}", f"--microbatches={sizes[1]}",
                     "-o", output, *arguments)


def legal_sizes(tools, schedule, tmp_path):
    for sizes in SIZES:
        if write(tools, schedule, sizes, tmp_path / "try.csv", "--emit=torch-csv", COSTS).returncode == 0:
            return sizes
    pytest.fail(f"{schedule} is legal for none of {SIZES}")


def commands(tools, program):
    """What a program runs: without its name and phases; places are not printed."""
    text = good(tools.opt(program, "--emit=streams")).stdout
    assert "stream.launch" in text
    text = re.sub(r"(stream\.program \d+ of )@\S+", r"\1@it", text)
    return [line for line in text.splitlines() if "stream.phase" not in line]


def expect_same_as_one_device(tools, program):
    done = good(tools.launch(program, *MODEL, "--set", "layers=8", "--check", "--json"))
    assert json.loads(done.stdout)["check"]["passed"] is True


@pytest.mark.parametrize("schedule", sorted(path.stem for path in EXAMPLES.glob("*.pipe")))
@pytest.mark.parametrize("form", ["torch-csv", "torch-csv-comms"])
def test_through_csv_to_the_same_commands(tools, tmp_path, schedule, form):
    sizes = legal_sizes(tools, schedule, tmp_path)
    good(write(tools, schedule, sizes, tmp_path / "direct.dpx", COSTS))
    good(write(tools, schedule, sizes, tmp_path / "x.csv", f"--emit={form}", COSTS))
    good(tools.opt(tmp_path / "x.csv", "-o", tmp_path / "through.dpx", COSTS))
    assert commands(tools, tmp_path / "direct.dpx") == commands(tools, tmp_path / "through.dpx")
    # And from the program back to the file.
    back = good(tools.opt(tmp_path / "direct.dpx", f"--emit={form}"))
    assert back.stdout == (tmp_path / "x.csv").read_text()
    for other in ("x.csv", "through.dpx"):
        same = good(tools.opt("--diff", tmp_path / "direct.dpx", tmp_path / other))
        assert same.stdout.startswith("no difference: ")


@pytest.mark.parametrize("file", sorted(path.name for path in REFERENCE.glob("*.csv")))
def test_published_orders_compile_and_run(tools, tmp_path, file):
    again = good(tools.opt(REFERENCE / file, "--emit=torch-csv"))
    assert again.stdout == (REFERENCE / file).read_text()
    assert "remark: placement: " in again.stderr
    good(tools.opt(REFERENCE / file, "-o", tmp_path / "x.dpx"))
    expect_same_as_one_device(tools, tmp_path / "x.dpx")


@pytest.mark.parametrize("file", ["dualpipe-r4-m10.csv", "peer-vhalf-r4-m8.csv"])
@pytest.mark.parametrize("form", ["torch-csv", "torch-csv-comms"])
def test_as_an_explicit_program(tools, tmp_path, file, form):
    """`.csv → .pipe → .csv` keeps every cell, transfers by hand among them."""
    good(tools.opt(REFERENCE / file, f"--emit={form}", "-o", tmp_path / "x.csv"))
    good(tools.opt(tmp_path / "x.csv", "--emit=pipe", "-o", tmp_path / "x.pipe"))
    ranks, count = re.search(r"r(\d+)-m(\d+)", file).groups()
    again = good(tools.opt(tmp_path / "x.pipe", f"--ranks={ranks}", f"--microbatches={count}", f"--emit={form}"))
    assert again.stdout == (tmp_path / "x.csv").read_text()


def test_the_older_dialect_there_and_back(tools, tmp_path):
    reference = REFERENCE / "dualpipev-r4-m10.csv"
    good(tools.opt(reference, "--legacy-csv", "-o", tmp_path / "old.csv"))
    old = (tmp_path / "old.csv").read_text()
    assert "BW" in old and "I" not in old
    again = good(tools.opt(tmp_path / "old.csv", "--emit=torch-csv"))
    assert "read as the older dialect" in again.stderr
    assert again.stdout == reference.read_text()


def test_a_zero_bubble_order_of_the_older_dialect_needs_the_option(tools, tmp_path):
    """It has no full backward, so nothing in it tells the dialects apart."""
    reference = REFERENCE / "peer-zb1p-r4-m8.csv"
    good(tools.opt(reference, "--legacy-csv", "-o", tmp_path / "old.csv"))
    wrong = tools.opt(tmp_path / "old.csv", "--emit=torch-csv")
    assert wrong.returncode == 1 and "pass --csv-dialect=legacy" in wrong.stderr
    again = good(tools.opt(tmp_path / "old.csv", "--csv-dialect=legacy", "--emit=torch-csv"))
    assert again.stdout == reference.read_text()


def test_hand_placed_transfers_keep_their_place(tools, tmp_path):
    (tmp_path / "x.csv").write_text(
        "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
    again = good(tools.opt(tmp_path / "x.csv", "--emit=torch-csv-comms"))
    assert re.sub(r",\dREDUCE_GRAD", "", again.stdout) == (tmp_path / "x.csv").read_text()
    good(tools.opt(tmp_path / "x.csv", "-o", tmp_path / "x.dpx"))
    expect_same_as_one_device(tools, tmp_path / "x.dpx")


def place_transfers(text, rng, eagerness):
    """The computes of a file with sends and receives at random places that are legal: one random
    sequence over all ranks, in which both ends of a transfer are one event. Transfers come as soon as
    they may for an eagerness of 1, as late as they may for 0."""
    rows = [[re.findall(r"(\d+)([FIWB])(\d+)", cell) for cell in line.split(",")] for line in text.splitlines()]
    rank_of = {(int(s), int(m)): rank for rank, row in enumerate(rows) for cell in row for s, t, m in cell if t == "F"}
    at, lists, arrived, queues = [0] * len(rows), [[] for _ in rows], set(), {}

    def neighbour(stage, kind, step):
        return stage + (step if kind == "F" else -step)

    def is_ready(rank, cell):
        for s, t, m in cell:
            source = neighbour(int(s), t, -1)
            if t != "W" and (source, int(m)) in rank_of and ("F" if t == "F" else "B", source, int(m)) not in arrived:
                return False
        return True

    def run(rank):
        cell = rows[rank][at[rank]]
        at[rank] += 1
        names = ["".join(op) for op in cell]
        lists[rank].append(names[0] if len(names) == 1 else f"({';'.join(names)})OVERLAP_F_B")
        for s, t, m in cell:
            kind, stage, mb = "F" if t == "F" else "B", int(s), int(m)
            target = neighbour(stage, kind, 1)
            if t == "W" or (target, mb) not in rank_of:
                continue
            if rank_of[target, mb] == rank:
                arrived.add((kind, stage, mb))
            else:
                queues.setdefault((rank, rank_of[target, mb], kind), []).append((stage, mb))

    def transfer(channel):
        source, target, kind = channel
        stage, mb = queues[channel].pop(0)
        lists[source].append(f"{stage}SEND_{kind}{mb}")
        lists[target].append(f"{neighbour(stage, kind, 1)}RECV_{kind}{mb}")
        arrived.add((kind, stage, mb))

    while True:
        computes = [rank for rank, row in enumerate(rows) if at[rank] < len(row) and is_ready(rank, row[at[rank]])]
        channels = [channel for channel, queue in queues.items() if queue]
        if not computes and not channels:
            break
        if channels and (not computes or rng.random() < eagerness):
            transfer(rng.choice(channels))
        else:
            run(rng.choice(computes))
    assert at == [len(row) for row in rows]
    return "\n".join(",".join(line) for line in lists) + "\n"


@pytest.mark.parametrize("file", ["dualpipe-r4-m10.csv", "dualpipev-r4-m10.csv", "peer-zbv-r4-m8.csv"])
@pytest.mark.parametrize("eagerness", [0, 0.5, 1])
def test_any_legal_place_of_transfers_runs(tools, tmp_path, file, eagerness):
    text = place_transfers((REFERENCE / file).read_text(), random.Random(f"{file} {eagerness}"), eagerness)
    (tmp_path / "x.csv").write_text(text)
    again = good(tools.opt(tmp_path / "x.csv", "--emit=torch-csv-comms"))
    assert re.sub(r",\dREDUCE_GRAD", "", again.stdout) == text
    good(tools.opt(tmp_path / "x.csv", "-o", tmp_path / "x.dpx"))
    expect_same_as_one_device(tools, tmp_path / "x.dpx")


def test_transfers_that_would_deadlock(tools, tmp_path):
    (tmp_path / "x.csv").write_text(
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
    done = tools.opt(tmp_path / "x.csv", "-o", tmp_path / "x.dpx")
    assert done.returncode == 1
    assert "x.csv:1:18: error: D3: the transfers cannot finish: 2 ranks wait" in done.stderr
    assert done.stderr.count("note: ") == 4
    assert not (tmp_path / "x.dpx").exists()


def test_forward_only(tools, tmp_path):
    reference = REFERENCE / "dualpipev-r4-m10.csv"
    done = good(tools.opt(reference, "--forward-only", "--emit=torch-csv"))
    assert set(re.findall("[A-Z]", done.stdout)) == {"F"}
    direct = good(tools.opt(EXAMPLES / "dualpipev.pipe", "--ranks=4", "--microbatches=10", "--forward-only",
                            "--emit=torch-csv"))
    assert done.stdout == direct.stdout


def test_diff_of_two_schedules(tools):
    done = tools.opt("--diff", EXAMPLES / "1f1b.pipe", REFERENCE / "peer-zb1p-r4-m8.csv",
                     "--ranks=4", "--microbatches=8")
    assert done.returncode == 1
    assert "work: stage 0, micro-batch 0 (and 31 more): fwd, bwd in a, fwd, bwd_input, bwd_weight in b" in done.stdout
    assert "order: rank 1 differs from place " in done.stdout
    assert "1f1b.pipe:" in done.stdout and "peer-zb1p-r4-m8.csv:2:" in done.stdout


def test_two_directions_are_written_with_a_warning(tools, tmp_path):
    done = good(write(tools, "dualpipe", (4, 8), tmp_path / "x.csv"))
    assert "warning: PyTorch cannot run this schedule: stage 0 is on ranks 0 and 3" in done.stderr


def test_kinds_of_input_by_what_they_begin_with(tools, tmp_path):
    """Names without an ending that says what they are."""
    for name, text, arguments in [
            ("pipe", (EXAMPLES / "1f1b.pipe").read_text(), ["--ranks=2", "--microbatches=2"]),
            ("csv", "0F0,0B0\n1F0,1B0\n", []),
            ("csv-compound", " ,(0F0;0F1)OVERLAP_F_B,0B1,0B0\n", [])]:
        path = tmp_path / name
        path.write_text(text)
        done = good(tools.opt(path, *arguments, "--emit=torch-csv"))
        assert re.match(r"\(?0F0[,;]0F1", done.stdout) or done.stdout == text
    program = tools.compile("1f1b", 2, 4)
    (tmp_path / "program").write_bytes(program.read_bytes())
    assert good(tools.opt(tmp_path / "program")).stdout == good(tools.opt(program)).stdout

"""A process per rank, on GPUs and NCCL made of software (test/support/softgpu/Bridge.h).

Each test starts all processes of a run on this machine; they meet on the loopback interface.
"""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import BIN
from test_cuda import SMALL, has_driver, soft, with_nccl

pytestmark = pytest.mark.usefixtures("kernels")


def find_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]


class Run:
    """The processes of a run, started together; rank 0 last, who need not be the first."""

    def __init__(self, folder, count, program, *arguments, env=None, by_rank=None, absent=(), port=None,
                 **options):
        self.folder = folder
        self.started = time.monotonic()
        port = port or find_port()
        self.processes = {}
        for rank in reversed(range(count)):
            if rank in absent:
                continue
            own = {} if by_rank is None else by_rank.get(rank, {})
            given = own.get("arguments", arguments)
            variables = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "MASTER_ADDR": "localhost",
                         "MASTER_PORT": port, "DUALPIPE_SOFTGPU_REPORT": folder / f"report{rank}",
                         **soft(gpus=count, seed=rank, **options, **own.get("faults", {})), **(env or {}),
                         **own.get("env", {})}
            self.processes[rank] = subprocess.Popen(
                [BIN / "launcher", own.get("program", program), *map(str, given)], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                env={**os.environ, **{name: str(value) for name, value in variables.items()}})

    def end(self):
        """Waits for all; what each printed and said, by rank."""
        try:
            done = {rank: process.communicate(timeout=120) for rank, process in sorted(self.processes.items())}
        finally:
            for process in self.processes.values():
                process.kill()  # nothing happens to those that have ended
                process.wait()
        self.seconds = time.monotonic() - self.started
        self.codes = {rank: self.processes[rank].returncode for rank in done}
        return done

    def passes(self):
        """What rank 0 printed: the others have nothing to say, and the GPUs nothing to report."""
        done = self.end()
        for rank, (out, err) in done.items():
            assert err == "", f"rank {rank}"
            assert rank == 0 or out == "", f"rank {rank}"
            lines = (self.folder / f"report{rank}").read_text().splitlines()
            assert lines[1:] == []
            assert int(lines[0].split()[0]) > 50
        assert set(self.codes.values()) == {0}
        return done[0][0]

    def fails(self, *texts, by_rank=None, within=60):
        """Every process ends soon, with code 1 and the same words."""
        done = self.end()
        for rank, (_, err) in done.items():
            assert self.codes[rank] == 1, (rank, err)
            for text in (by_rank or {}).get(rank, texts):
                assert text in err, f"rank {rank}"
        assert self.seconds < within
        return done


# Results --------------------------------------------------------------------------------------


def run_alone(tools, program, count, *arguments, **options):
    """All ranks in this process."""
    done = tools.launch(program, "--backend=cuda", *arguments, env=soft(gpus=count, **options))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("schedule,ranks,microbatches,arguments", [
    ("dualpipe", 4, 8, []), ("dualpipe", 8, 16, []), ("dualpipe", 4, 8, ["--fold-channels"]),
    ("1f1b", 4, 8, []), ("1f1b", 4, 8, ["--fold-channels"]), ("zb-h1", 4, 8, []), ("dualpipev", 2, 4, []),
    ("interleaved", 2, 4, [])])
def test_results_are_those_of_one_process(tools, tmp_path, schedule, ranks, microbatches, arguments):
    program = tools.compile(schedule, ranks, microbatches)
    arguments = [*SMALL, "--steps=2", "--check", "--json", *arguments]
    together = json.loads(Run(tmp_path, ranks, program, *arguments, communicator=1 << 20).passes())
    alone = json.loads(run_alone(tools, program, ranks, *arguments, communicator=1 << 20))
    assert together["check"] == alone["check"]
    assert together["check"]["passed"]
    assert [step["loss"] for step in together["steps"]] == [step["loss"] for step in alone["steps"]]
    for name in ["weights_digest", "commands_per_step", "memory", "device"]:
        assert together[name] == alone[name]
    assert [rank["rank"] for rank in together["memory"]] == list(range(ranks))


def test_three_copies_are_gathered(tools, tmp_path):
    """Gradients of three ranks are gathered and added in the order of ranks."""
    source = tmp_path / "three.pipe"
    source.write_text("""pipe 1
schedule three(ranks P, microbatches M) {
  pipeline a { stages 1; microbatches M / 3; place s -> 0 }
  pipeline b { stages 1; microbatches M / 3; place s -> 1 }
  pipeline c { stages 1; microbatches M / 3; place s -> 2 }
  share a, b, c
  rank r {
    if r == 0 { repeat M / 3 { fwd a; bwd a } }
    if r == 1 { repeat M / 3 { fwd b; bwd b } }
    if r == 2 { repeat M / 3 { fwd c; bwd c } }
  }
}
""")
    program = tmp_path / "three.dpx"
    done = tools.opt(source, "--ranks=3", "--microbatches=6", "-o", program)
    assert done.returncode == 0, done.stderr
    arguments = [*SMALL, "--steps=2", "--check", "--json"]
    together = json.loads(Run(tmp_path, 3, program, *arguments).passes())
    assert together["check"]["passed"]
    assert together["weights_digest"] == json.loads(run_alone(tools, program, 3, *arguments))["weights_digest"]


def test_steps_and_memory_are_printed_by_rank_0(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    out = Run(tmp_path, 4, program, *SMALL, "--steps=3", "--check", communicator=1 << 20).passes()
    alone = run_alone(tools, program, 4, *SMALL, "--steps=3", "--check", communicator=1 << 20)

    def times(text):
        return re.sub(r"[0-9.]+ ms", "ms", text)

    assert times(out) == times(alone)
    assert out.count("\nstep ") == 3
    assert ("communicators of ranks 1 to 2: 4, 4.0 MiB when they were made; hold up to 16 of 1 multiprocessors "
            "while transfers wait, more than there are") in out


def test_without_a_check_digests_alone_travel(tools, tmp_path):
    program = tools.compile("dualpipe", 4, 8)
    together = json.loads(Run(tmp_path, 4, program, *SMALL, "--json").passes())
    alone = json.loads(run_alone(tools, program, 4, *SMALL, "--json"))
    assert together["weights_digest"] == alone["weights_digest"]
    assert together["cpu_seconds_per_step"] > 0


def test_communicators_of_the_report(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    together = json.loads(Run(tmp_path, 2, program, *SMALL, "--json", communicator=3000).passes())
    assert [rank["communicators"] for rank in together["memory"]] == 2 * [
        {"count": 2, "bytes": 6000, "blocks": 8, "multiprocessors": 1}]
    folded = json.loads(Run(tmp_path, 2, program, *SMALL, "--json", "--fold-channels", communicator=3000).passes())
    assert [rank["communicators"]["bytes"] for rank in folded["memory"]] == [3000, 3000]


def test_each_rank_has_a_file_of_its_own(tools, tmp_path):
    """Locations and phases are of each file, the rest is the same."""
    files = {rank: {"program": tools.compile("dualpipe", 4, 8, f"--only-rank={rank}")} for rank in range(4)}
    together = json.loads(Run(tmp_path, 4, None, *SMALL, "--json", by_rank=files).passes())
    alone = json.loads(run_alone(tools, tools.compile("dualpipe", 4, 8), 4, *SMALL, "--json"))
    assert together["weights_digest"] == alone["weights_digest"]
    assert together["memory"] == alone["memory"]
    files[0] = {"program": tools.compile("dualpipe", 4, 8)}
    out = Run(tmp_path, 4, None, *SMALL, "--check", by_rank=files).passes()
    assert "check passed: losses, gradients and weights agree bit for bit" in out


@pytest.mark.parametrize("schedule,arguments", [("dualpipe", []), ("1f1b", ["--fold-channels"])])
def test_steps_as_graphs(tools, tmp_path, schedule, arguments):
    program = tools.compile(schedule, 4, 8)
    arguments = [*SMALL, "--steps=4", "--json", "--check", "--graph=require", *arguments]
    together = json.loads(Run(tmp_path, 4, program, *arguments).passes())
    alone = json.loads(run_alone(tools, program, 4, *arguments))
    assert together["check"]["passed"]
    assert together["weights_digest"] == alone["weights_digest"]


def test_graphs_are_for_all_or_none(tools, tmp_path):
    """One rank cannot capture its step: all go on issuing, and rank 0 says why."""
    program = tools.compile("1f1b", 4, 8)
    faults = {2: {"faults": {"fail": "cuStreamBeginCapture:1:1"}}}
    run = Run(tmp_path, 4, program, *SMALL, "--steps=3", "--check", "--graph", by_rank=faults)
    done = run.end()
    assert set(run.codes.values()) == {0}
    assert "check passed" in done[0][0]
    assert "launcher: note: steps are issued without graphs, since one cannot be captured: " in done[0][1]
    assert [err for rank, (_, err) in done.items() if rank != 0] == ["", "", ""]
    Run(tmp_path, 4, program, *SMALL, "--steps=3", "--graph=require", by_rank=faults).fails(
        "graphs are required (--graph=require), and a step cannot be captured: ")


def test_each_process_sees_one_gpu(tools, tmp_path):
    """As Slurm gives them with --gpus-per-task=1."""
    program = tools.compile("1f1b", 4, 8)
    own = {rank: {"env": {"CUDA_VISIBLE_DEVICES": rank, "LOCAL_RANK": 0}} for rank in range(4)}
    assert "check passed" in Run(tmp_path, 4, program, *SMALL, "--check", by_rank=own).passes()


def test_one_process_of_one(tools):
    program = tools.compile("1f1b", 2, 4)
    done = tools.launch(program, *SMALL, "--check", "--backend=cpu", env={"RANK": "0", "WORLD_SIZE": "1"})
    assert done.returncode == 0, done.stderr
    assert "2 ranks" in done.stdout


# What does not fit ------------------------------------------------------------------------------


def test_a_process_is_missing(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    Run(tmp_path, 4, program, *SMALL, "--timeout=5", absent=[2]).fails("after 5 s rank 0 still waits for ranks 2 at port")


def test_another_program(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    other = {"program": tools.compile("zb-h1", 4, 8)}
    Run(tmp_path, 4, program, *SMALL, by_rank={2: other}).fails(
        "rank 0 failed: rank 2 runs another program than rank 0; give all ranks the same file")


def test_the_same_program_with_another_order_of_sums(tools, tmp_path):
    """Its channels are the same, so only the reductions show it."""
    text = """pipe 1
schedule two(ranks P, microbatches M) {{
  pipeline a {{ stages 2; microbatches M / 2; place s -> 0 }}
  pipeline b {{ stages 2; microbatches M / 2; place s -> 1 }}
  share a, b
  rank r {{
    if r == 0 {{ fwd a[0]; fwd a[1]; bwd_input a[1]; bwd_input a[0]; {zero} }}
    if r == 1 {{ fwd b[0]; fwd b[1]; bwd_input b[1]; bwd_input b[0]; {one} }}
  }}
}}
"""
    files = []
    for name, stages in [("up", (0, 1)), ("down", (1, 0))]:
        source = tmp_path / f"{name}.pipe"
        orders = {key: "; ".join(f"bwd_weight {pipeline}[{stage}]" for stage in stages)
                  for key, pipeline in [("zero", "a"), ("one", "b")]}
        source.write_text(text.format(**orders))
        files.append(tmp_path / f"{name}.dpx")
        done = tools.opt(source, "--ranks=2", "--microbatches=2", "-o", files[-1])
        assert done.returncode == 0, done.stderr
    Run(tmp_path, 2, None, *SMALL, by_rank={0: {"program": files[0]}, 1: {"program": files[1]}}).fails(
        "ranks 0 and 1 sum their gradients in different orders; give all ranks the same file")


def test_other_options(tools, tmp_path):
    program = tools.compile("1f1b", 4, 8)
    other = {"arguments": [*SMALL, "--steps=3"]}
    Run(tmp_path, 4, program, *SMALL, "--steps=2", by_rank={1: other}).fails(
        "rank 1 was started with other options than rank 0: it has --model=mlp --set hidden=8 --set seq=4 "
        "--set batch=2 --steps=3 --seed=0 --optimizer=sgd --lr=0.01, rank 0 has --model=mlp --set hidden=8 "
        "--set seq=4 --set batch=2 --steps=2 --seed=0 --optimizer=sgd --lr=0.01")


def test_a_world_of_another_size(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    run = Run(tmp_path, 3, program, *SMALL)
    run.fails("WORLD_SIZE is 3, and ", " is a program of 2 ranks; start 2 processes, or compile it with --ranks=3")


def test_a_file_that_is_not_there(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    Run(tmp_path, 2, program, *SMALL, by_rank={1: {"program": tmp_path / "none.dpx"}}).fails(
        "rank 1 failed: cannot open '", "none.dpx': No such file or directory")


def test_a_file_without_the_rank(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4, "--only-rank=1")
    Run(tmp_path, 2, program, *SMALL).fails(
        "the file has no section for rank 0; compile it with --only-rank=0, or without for all ranks")
    files = {0: {"program": tools.compile("1f1b", 2, 4, "--only-rank=0")}}
    Run(tmp_path, 2, program, *SMALL, "--check", by_rank=files).fails(
        "--check replays all ranks at rank 0, and ", " holds 1 of 2; compile it without --only-rank")


@pytest.mark.parametrize("variables,text", [
    ({"WORLD_SIZE": None}, "WORLD_SIZE is not set: a run of several processes needs RANK, WORLD_SIZE, LOCAL_RANK, "
     "MASTER_ADDR and MASTER_PORT"),
    ({"RANK": "two"}, "RANK is 'two', expected a whole number from 0 to"),
    ({"RANK": "2"}, "RANK is 2 and WORLD_SIZE is 2, expected a rank below it"),
    ({"MASTER_ADDR": None}, "MASTER_ADDR is not set: the name or address of the machine of rank 0")])
def test_bad_variables(tools, variables, text):
    program = tools.compile("1f1b", 2, 4)
    given = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1",
             **variables}
    done = tools.launch(program, env={name: value for name, value in given.items() if value is not None})
    assert done.returncode == 1
    assert text in done.stderr


@pytest.mark.parametrize("arguments,text", [
    (["--backend=cpu"], "RANK and WORLD_SIZE are set: a run of several processes needs a GPU for each, and does not run "
     "on the CPU; unset RANK and WORLD_SIZE, and all ranks run in one process"),
    (["--shuffle=1"], "does not run on the CPU; unset RANK and WORLD_SIZE"),
    (["--explain"], "RANK and WORLD_SIZE are set: --trace, --profile and --explain record runs of one process; unset")])
def test_what_is_for_one_process(tools, tmp_path, arguments, text):
    program = tools.compile("1f1b", 2, 4)
    Run(tmp_path, 2, program, *SMALL, *arguments).fails(text)


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_no_gpu(tools, tmp_path, backend):
    program = tools.compile("1f1b", 2, 4)
    Run(tmp_path, 2, program, *SMALL, f"--backend={backend}", env={"LD_LIBRARY_PATH": ""}).fails(
        "a run of several processes needs a GPU for each: there is no CUDA driver",
        "; or unset RANK and WORLD_SIZE, and all ranks run in one process")


def test_more_processes_than_gpus(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    Run(tmp_path, 2, program, *SMALL, by_rank={1: {"env": {"LOCAL_RANK": 2}}}).fails(
        "rank 1 failed: LOCAL_RANK is 2, and the driver finds 2 GPUs for this process; start as many processes on a "
        "machine as it has GPUs, or set LOCAL_RANK=0 where each process is given one of its own")


def test_two_processes_on_one_gpu(tools, tmp_path):
    """NCCL refuses it."""
    program = tools.compile("1f1b", 2, 4)
    Run(tmp_path, 2, program, *SMALL, by_rank={1: {"env": {"LOCAL_RANK": 0}}}).fails(
        "failed: the communicator from rank 0 to rank 1 (activations) failed: ncclInvalidUsage")


def test_no_nccl(tools, tmp_path):
    program = tools.compile("1f1b", 2, 4)
    env = {"LD_LIBRARY_PATH": with_nccl("old")["LD_LIBRARY_PATH"]}
    Run(tmp_path, 2, program, *SMALL, env=env).fails(
        "rank 0 failed: NCCL between processes cannot be used: NCCL is version 2.15.1")
    Run(tmp_path, 2, program, *SMALL, by_rank={1: {"env": env}}).fails(
        "rank 1 failed: NCCL between processes cannot be used: NCCL is version 2.15.1")


# What another process sends ---------------------------------------------------------------------

SHARE, GATHER, REQUEST, ANSWER = range(4)  # MessageKind
HEADER = struct.Struct("<IIQ")
HELLO_BYTES, WELCOME_BYTES = 24, 8


class Between:
    """Rank 1 takes it for rank 0, and rank 0 for rank 1: one message of a kind is replaced on its way."""

    def __init__(self, port, kind, number, text):
        self.hub, self.replaced, self.text = port, (kind, number), text
        self.numbers = {}
        self.listener = socket.create_server(("localhost", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.connect, daemon=True).start()

    def connect(self):
        rank = self.listener.accept()[0]
        while True:  # until rank 0 listens
            try:
                hub = socket.create_connection(("localhost", self.hub))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        for source, target, first in [(rank, hub, HELLO_BYTES), (hub, rank, WELCOME_BYTES)]:
            threading.Thread(target=self.pass_on, args=(source, target, first), daemon=True).start()

    def pass_on(self, source, target, first):
        with source.makefile("rb") as stream:
            target.sendall(stream.read(first))
            while len(header := stream.read(HEADER.size)) == HEADER.size:
                kind, _, size = HEADER.unpack(header)
                data = stream.read(size)
                number = self.numbers[kind] = self.numbers.get(kind, -1) + 1
                if (kind, number) == self.replaced:
                    data = self.text
                target.sendall(HEADER.pack(kind, 0, len(data)) + data)
        target.shutdown(socket.SHUT_WR)


NO_RUN = "rank 0 failed: rank 1 has sent something else than what it runs; do both run the same launcher?"
NO_MEMORY = "rank 0 failed: rank 1 has sent something else than its memory; do both run the same launcher?"


@pytest.mark.parametrize("kind,number,sent,text", [
    (GATHER, 0, b"{", NO_RUN), (GATHER, 0, b"[1]", NO_RUN), (GATHER, 0, b'{"digest": 1, "options": 2}', NO_RUN),
    (GATHER, 0, b'{"digest": 1, "options": "", "reductions": {"0": "x"}}', NO_RUN),
    (GATHER, 1, b"", NO_MEMORY), (GATHER, 1, b"{}", NO_MEMORY), (GATHER, 1, b"[7]", NO_MEMORY),
    (GATHER, 1, b'[{"rank": 0, "commands": 1, "memory": "", "communicators": "", "json": {}}]', NO_MEMORY),
    (SHARE, 0, b"short", "rank 1 failed: rank 0 has 5 bytes of ids for communicators, expected 256"),
    (REQUEST, 1, struct.pack("<Q", 9 << 2 | 1), "rank 1 failed: rank 0 asks for copy 9 of a stage, of 1 on this rank"),
    (ANSWER, 0, b"abc", "rank 0 failed: rank 1 has sent 3 bytes of its results, expected 8")])
def test_what_another_process_sends_is_checked(tools, tmp_path, kind, number, sent, text):
    program = tools.compile("1f1b", 2, 4)
    port = find_port()
    between = Between(port, kind, number, sent)
    own = {1: {"env": {"MASTER_PORT": between.port}}}
    Run(tmp_path, 2, program, *SMALL, "--json", by_rank=own, port=port).fails(text)


# What goes wrong on the way ---------------------------------------------------------------------


@pytest.mark.parametrize("rank,fault,texts", [
    (2, "cuMemAlloc:3:2", ["rank 2 failed: cuMemAlloc of ", "CUDA_ERROR_OUT_OF_MEMORY"]),
    (0, "cuMemAlloc:3:2", ["rank 0 failed: cuMemAlloc of ", "CUDA_ERROR_OUT_OF_MEMORY"]),
    (0, "ncclGetUniqueId:2:3", ["rank 0 failed: ncclGetUniqueId failed: ncclInternalError"]),
    (3, "ncclCommInitRankConfig:1:3", ["rank 3 failed: creating the communicator from rank 2 to rank 3 (activations) "
                                       "failed: ncclInternalError"]),
    (1, "cuMemGetInfo:2:1", ["rank 1 failed: cuMemGetInfo failed: CUDA_ERROR_INVALID_VALUE"]),
    (1, "ncclSend:4:6", ["rank 1 failed: ncclSend on the communicator from rank 1 to rank ", "ncclRemoteError"]),
    (0, "ncclRecv:2:3", ["rank 0 failed: ncclRecv on the communicator from rank 1 to rank 0 (gradients) failed: "
                         "ncclInternalError"]),
    (2, "cuLaunchKernel:25:719", ["rank 2 (", "CUDA_ERROR_LAUNCH_FAILED"])])
def test_a_rank_fails(tools, tmp_path, rank, fault, texts):
    program = tools.compile("1f1b", 4, 8)
    Run(tmp_path, 4, program, *SMALL, "--steps=3", by_rank={rank: {"faults": {"fail": fault}}}).fails(*texts)


def wait_for_a_step(run):
    """Until rank 0 has printed one."""
    for line in run.processes[0].stdout:
        if line.startswith("step "):
            return


@pytest.mark.parametrize("victim", [0, 2])
def test_a_process_is_killed(tools, tmp_path, victim):
    program = tools.compile("1f1b", 4, 8)
    run = Run(tmp_path, 4, program, *SMALL, "--steps=1000000")
    wait_for_a_step(run)
    run.processes[victim].kill()
    done = run.end()
    assert run.codes == {rank: -signal.SIGKILL if rank == victim else 1 for rank in range(4)}
    for rank, (_, err) in done.items():
        assert rank == victim or (f"launcher: error: rank {victim} went away: its process was killed or has crashed, "
                                  "or its machine cannot be reached; its own output may say more") in err
    assert run.seconds < 60


@pytest.mark.parametrize("victim", [0, 2])
def test_a_process_is_stopped(tools, tmp_path, victim):
    """Its connections stand, and it says nothing any more."""
    program = tools.compile("1f1b", 4, 8)
    run = Run(tmp_path, 4, program, *SMALL, "--timeout=5", "--steps=1000000")
    wait_for_a_step(run)
    run.processes[victim].send_signal(signal.SIGSTOP)
    try:
        for rank in set(run.processes) - {victim}:
            run.processes[rank].wait(timeout=60)
    finally:
        run.processes[victim].kill()
        done = run.end()
    for rank, (_, err) in done.items():
        assert rank == victim or (f"launcher: error: rank {victim} has given no sign of life for 8 s; is its process "
                                  "stopped?") in err
    assert run.codes == {rank: -signal.SIGKILL if rank == victim else 1 for rank in range(4)}


def test_a_kernel_never_ends(tools, tmp_path):
    """A hang is one of all ranks: each says what it waits for."""
    program = tools.compile("1f1b", 4, 8)
    run = Run(tmp_path, 4, program, *SMALL, "--timeout=5", "--steps=20", by_rank={1: {"faults": {"hang": 60}}})
    done = run.fails("launcher: error: no progress for 5 s; what each rank waits for:\n  rank 0, ", "\n  rank 1, ",
                     "\n  rank 2, ", "\n  rank 3, ", "1f1b.pipe:")
    assert len({err for _, err in done.values()}) == 1


def test_a_rank_that_has_finished_waits_for_nothing(tools, tmp_path):
    """Rank 1 of two runs its last command long before rank 0, which hangs."""
    program = tools.compile("1f1b", 2, 4)
    for number in range(200, 0, -5):  # the last kernels of rank 0
        run = Run(tmp_path, 2, program, *SMALL, "--timeout=5", by_rank={0: {"faults": {"hang": number}}})
        done = run.end()
        if "\n  rank 1 has finished" in done[0][1]:
            break
    assert "no progress for 5 s; what each rank waits for:" in done[0][1]
    assert "\n  rank 1 has finished" in done[0][1]


def test_help_names_the_variables(tools):
    text = tools.launch("--help").stdout
    for name in ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "DUALPIPE_PORT"]:
        assert name in text

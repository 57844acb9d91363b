#!/usr/bin/env python3
"""The checks and measurements of gpu-check.sh, which says how to call this.

    gpu_check.py --compile DUALPIPE_OPT FOLDER     compiles the program files
    gpu_check.py --run LAUNCHER --out FOLDER       runs them; --programs FOLDER, --quick
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
# schedule, ranks, micro-batches: every number of ranks from 1 to 8, both directions, and shared stages.
PROGRAMS = [("1f1b", 1, 4), ("dualpipe", 2, 6), ("1f1b", 3, 6), ("dualpipe", 4, 8), ("1f1b", 5, 10),
            ("dualpipe", 6, 12), ("zb-h1", 7, 14), ("dualpipe", 8, 20), ("dualpipev", 4, 8),
            ("chimera", 4, 8), ("zbv", 4, 8), ("interleaved", 4, 8)]
EMITTED = ("dualpipe", 4, 8)
CHECKED_EVERYWHERE = "mlp f32"
MODELS = {
    "mlp f32": ["--model=mlp", "--set", "dtype=f32"],
    "mlp bf16": ["--model=mlp", "--set", "dtype=bf16"],
    "mlp f64": ["--model=mlp", "--set", "dtype=f64"],
    "noop": ["--model=noop"],
}
LIMIT = 120  # seconds for one run


def name_of(program):
    schedule, ranks, microbatches = program
    return f"{schedule}-r{ranks}-m{microbatches}"


def compile_programs(compiler, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        schedule, ranks, microbatches = program
        subprocess.run([compiler, ROOT / "examples" / f"{schedule}.pipe", f"--ranks={ranks}",
                        f"--microbatches={microbatches}", "-o", folder / f"{name_of(program)}.dpx"], check=True)
        if program == EMITTED:
            subprocess.run([compiler, ROOT / "examples" / f"{schedule}.pipe", f"--ranks={ranks}", "--emit=cuda",
                            f"--microbatches={microbatches}", "-o", folder / "emitted"], check=True)


class Checks:
    """Runs the launcher, and collects a row for each run."""

    def __init__(self, launcher, programs, quick):
        self.launcher = launcher
        self.programs = programs
        self.sizes = ["--set", "hidden=16", "--set", "seq=4"] if quick else ["--set", "hidden=256", "--set", "seq=64"]
        self.quick = quick
        self.checked = PROGRAMS[:4] if quick else PROGRAMS
        self.rows = []
        self.figures = {}

    def launch(self, program, *arguments, before=(), one_gpu=True):
        env = dict(os.environ)
        if one_gpu:
            env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        command = [*before, self.launcher, self.programs / f"{name_of(program)}.dpx", "--backend=cuda", *arguments]
        try:
            return subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"not over after {LIMIT} s")

    def set_sizes(self, model):
        return self.sizes if model.startswith("mlp") else []

    def add(self, what, program, model, done, seconds=None):
        passed = done.returncode == 0
        lines = (done.stderr or done.stdout).strip().splitlines()
        self.rows.append({"check": what, "program": name_of(program), "model": model,
                          "result": "passed" if passed else "FAILED", "ms_per_step": seconds and 1e3 * seconds,
                          "message": "" if passed else "\n".join(lines[-5:])})

    def check(self, what, program, model, *arguments, **options):
        """One run of three steps that must equal its replay."""
        done = self.launch(program, *MODELS[model], *self.set_sizes(model), "--steps=3", "--check", "--json",
                           *arguments, **options)
        seconds = None
        if done.returncode == 0:
            steps = json.loads(done.stdout)["steps"]
            seconds = statistics.median(step["wall_seconds"] for step in steps[1:])
        self.add(what, program, model, done, seconds)

    def check_one_gpu(self):
        for graph in [[], ["--graph=require"]]:
            what = "copies, graph" if graph else "copies"
            for program in self.checked:
                self.check(what, program, CHECKED_EVERYWHERE, *graph)
            for model in MODELS:
                if model != CHECKED_EVERYWHERE:
                    self.check(what, ("dualpipe", 4, 8), model, *graph)

    def check_emitted(self, folder):
        """The step that --emit=cuda wrote, built by the C++ compiler that is at hand."""
        build = folder / "emitted"
        configure = ["cmake", "-S", self.programs / "emitted", "-B", build, f"-DDUALPIPE_INCLUDE_DIR={ROOT / 'include'}"]
        for command in [configure, ["cmake", "--build", build]]:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            if done.returncode != 0:
                return self.add("emitted", EMITTED, "", done)
        step = f"--step={build / 'libdualpipe_step.so'}"
        for what, arguments in [("emitted", []), ("emitted, graph", ["--graph=require"])]:
            self.check(what, EMITTED, CHECKED_EVERYWHERE, step, *arguments)
        return None

    def check_several_gpus(self, num_gpus):
        """NCCL needs a GPU for each rank."""
        fitting = [program for program in self.checked if 1 < program[1] <= num_gpus]
        for program in fitting:
            for what, arguments in [("nccl", []), ("nccl, folded", ["--fold-channels"]), ("nccl, graph", ["--graph=require"])]:
                self.check(what, program, CHECKED_EVERYWHERE, *arguments, one_gpu=False)
        return len(fitting)

    def check_memory(self):
        """A small case under NVIDIA's compute-sanitizer."""
        if self.quick:
            return "compute-sanitizer: left out by --quick"
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=f"{home}/bin")
        if not tool:
            return "compute-sanitizer: not found"
        for kind in ["memcheck", "racecheck"]:
            done = self.launch(("dualpipe", 2, 6), "--set", "hidden=16", "--set", "seq=4", "--check",
                               before=[tool, f"--tool={kind}", "--error-exitcode=9"])
            self.add(f"compute-sanitizer {kind}", ("dualpipe", 2, 6), "mlp f32", done)
        return None

    def measure(self, folder):
        self.measure_executor()
        self.measure_streams(folder)

    def measure_executor(self):
        """Host time per command: models that compute nothing, eight ranks on one GPU."""
        steps = 5 if self.quick else 50
        for what, arguments in [("executor", []), ("executor, graph", ["--graph=require"])]:
            done = self.launch(("dualpipe", 8, 20), "--model=noop", f"--steps={steps}", "--json", *arguments)
            if done.returncode != 0:
                self.add(what, ("dualpipe", 8, 20), "noop", done)
                continue
            run = json.loads(done.stdout)
            seconds = statistics.median(step["wall_seconds"] for step in run["steps"][1:])
            self.figures[f"{what}: microseconds of wall time per command, noop, 8 ranks"] = (
                1e6 * seconds / run["commands_per_step"])

    def measure_streams(self, folder):
        """From a trace by the clock of the GPU: what ran at the same time."""
        sizes = self.sizes if self.quick else ["--set", "hidden=2048", "--set", "seq=512"]
        trace = folder / "trace.json"
        program = ("dualpipe", 4, 8)
        done = self.launch(program, *sizes, "--steps=3", f"--trace={trace}")
        if done.returncode != 0:
            self.add("trace", program, "mlp f32", done)
            return
        spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
        is_copy = lambda span: span["cat"].startswith(("send", "recv"))
        computes = merge([span for span in spans if not is_copy(span)])
        copies = merge([span for span in spans if is_copy(span)])
        if copies:
            self.figures["copies under computes, share of their time"] = overlap(copies, computes) / length(copies)
        kernels = sum(span["dur"] for span in spans if not is_copy(span))
        begin, end = min(s["ts"] for s in spans), max(s["ts"] + s["dur"] for s in spans)
        self.figures["step / sum of its computes, 4 ranks on one GPU"] = (end - begin) / kernels


def merge(spans):
    """Intervals in which one of them runs."""
    merged = []
    for begin, end in sorted((span["ts"], span["ts"] + span["dur"]) for span in spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(intervals):
    return sum(end - begin for begin, end in intervals) or 1


def overlap(left, right):
    """Time in both of two lists of disjoint intervals in order."""
    total, i, k = 0, 0, 0
    while i < len(left) and k < len(right):
        total += max(0, min(left[i][1], right[k][1]) - max(left[i][0], right[k][0]))
        if left[i][1] < right[k][1]:
            i += 1
        else:
            k += 1
    return total


def print_table(rows, figures, notes):
    widths = [max(len(row[key]) for row in rows) for key in ("check", "program", "model")]
    for row in rows:
        cells = "  ".join(row[key].ljust(width) for key, width in zip(("check", "program", "model"), widths))
        took = f"{row['ms_per_step']:10.3f} ms a step" if row["ms_per_step"] else ""
        print(f"{cells}  {row['result']}{took}".rstrip())
        for line in row["message"].splitlines():
            print(f"    {line}")
    for name, value in figures.items():
        print(f"{name}: {value:.3f}")
    for note in notes:
        print(note)


def run(arguments):
    started = time.monotonic()
    devices = subprocess.run([arguments.run, "--devices"], capture_output=True, text=True).stdout
    print(devices, end="")
    gpus = re.findall(r"^  GPU \d+: ", devices, re.MULTILINE)
    if not gpus:
        print("gpu-check: no GPU is found here (above); nothing was run")
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    checks = Checks(arguments.run, arguments.programs, arguments.quick)
    checks.check_one_gpu()
    checks.check_emitted(arguments.out)
    notes = [] if checks.check_several_gpus(len(gpus)) else [f"nccl: not run, with {len(gpus)} GPU"]
    notes += filter(None, [checks.check_memory()])
    checks.measure(arguments.out)
    seconds = time.monotonic() - started
    failed = sum(row["result"] != "passed" for row in checks.rows)
    notes.append(f"{len(checks.rows) - failed} passed, {failed} failed, in {seconds:.0f} s")
    print_table(checks.rows, checks.figures, notes)
    result = {"devices": devices.splitlines(), "checks": checks.rows, "figures": checks.figures, "notes": notes,
              "seconds": seconds}
    (arguments.out / "gpu-check.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", nargs=2, type=pathlib.Path)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "gpu-check" / "results")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "gpu-check" / "programs")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.compile:
        return compile_programs(*arguments.compile)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())

"""
scripts/bench --llama: llama.cpp with less memory than its model needs, with `movable.follow` off, on and auto, against the same
with enough memory. The user builds llama-bench; the model is made here (llama_model.py).
"""
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from benchlib import BUILD, LEFT, MOVING, TOP, Bench, hog, host_memory, spread, table

# By word of the command line: the head of the column, the model (llama_model.py), and the arguments of llama-bench.
COLUMNS = {
    "pp512": ("prompt of 512", "dense", "-fa 1 -p 512 -n 0 -r 5"),
    "tg64": ("64 tokens", "dense", "-fa 1 -p 0 -n 64 -r 3"),
    "pp4096": ("prompt of 4,096, ubatch 2,048", "dense", "-fa 1 -p 4096 -n 0 -b 2048 -ub 2048 -r 4"),
    "tg16-deep": ("16 tokens at depth 16,384", "dense", "-fa 1 -p 0 -n 16 -d 16384 -b 2048 -ub 512 -r 2"),
    "pp2048-deep": ("prompt of 2,048 at depth 16,384, ubatch 2,048, no flash attention", "dense",
                    "-fa 0 -p 2048 -n 0 -d 16384 -b 2048 -ub 2048 -r 1"),
    "tg64-experts": ("64 tokens, mixture of experts", "experts", "-fa 1 -p 0 -n 64 -r 3"),
    "pp2048-experts": ("prompt of 2,048, mixture of experts, ubatch 2,048", "experts", "-fa 1 -p 2048 -n 0 -b 2048 -ub 2048 -r 4"),
}
ALWAYS = ("-ngl", "99", "-mmp", "0", "-o", "json")
RESIDENT, FOLLOW = "enough memory", ("off", "on", "auto")
# The same in all runs. NVLink multicast can put a shared host's GPUs out of service.
MACHINE = {"NVSHMEM_DISABLE_NVLS": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
LONGEST = 240  # seconds of a run


class Speeds:
    """Tokens per second of a column's repetitions, of all turns. After a failure the others go on without it."""

    def __init__(self):
        self.found, self.failure = [], None

    def add(self, run):
        self.failure = failure(run)
        if not self.failure:
            self.found += [speed for test in json.loads(run.stdout) for speed in test["samples_ts"]]

    def median(self):
        return statistics.median(self.found) if self.found and not self.failure else None

    def __str__(self):
        if self.failure or not self.found:
            return self.failure or ""
        return spread(self.found, 0 if min(self.found) >= 1000 else 1 if min(self.found) >= 100 else 2)


def failure(run):
    """Why a run has no figures, or None. A llama-bench that finds no device computes on the processor and succeeds."""
    if run.status == 124:
        return f"not finished in {LONGEST} s"
    if run.status:
        return f"status {run.status}"
    try:
        tests = json.loads(run.stdout)
        if not tests or not all(test["samples_ts"] for test in tests):
            return "no figures"
        return None if all(test["gpu_info"] for test in tests) else "no GPU used"
    except (ValueError, KeyError, TypeError):
        return "no figures"


def make_model(gguf_py, path, kind="dense"):
    program = [sys.executable, str(TOP / "tests/bench/llama_model.py"), gguf_py, str(path), kind]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: the model could not be made with the writer of {gguf_py}:\n{done.stderr.strip()[-2000:]}")


class Llama:
    """Runs llama-bench. Each figure is printed as it comes: a run that is cut off has said what it could."""

    def __init__(self, bench, program, columns):
        self.bench, self.program = bench, program
        self.speeds = {column: {way: Speeds() for way in (RESIDENT, *FOLLOW)} for column in columns}

    def turn(self, models, pressure):
        """Each column in each way, once. `models`: their files by kind. `pressure` makes a context in which memory is short."""
        for column in self.speeds:
            self.run(models, column, RESIDENT)
        with pressure() as taken:
            if taken:
                print(f"another process holds the rest by plain allocations; {taken.said}", flush=True)
            for column in self.speeds:
                for way in FOLLOW:
                    self.run(models, column, way, chain=MOVING, SPILL_MOVABLE_FOLLOW=way)

    def run(self, models, column, way, **options):
        speeds = self.speeds[column][way]
        if speeds.failure:
            return
        _, kind, arguments = COLUMNS[column]
        command = [self.program, "-m", str(models[kind]), *ALWAYS, *arguments.split()]
        run = self.bench.run(command, timeout=LONGEST, **MACHINE, **options)
        speeds.add(run)
        print(f"  {column}, {way}: {speeds}", flush=True)
        if speeds.failure:
            print(run.stderr[-1500:], flush=True)

    def against(self, column):
        """`auto` against the better of the other two."""
        medians = {way: self.speeds[column][way].median() for way in FOLLOW}
        auto = medians.pop("auto")
        found = {way: median for way, median in medians.items() if median}
        if not auto or not found:
            return ""
        best = max(found, key=found.get)
        return f"{auto / found[best]:.2f} of `{best}`"

    def table(self):
        rows = [("", *(COLUMNS[column][0] for column in self.speeds))]
        for way in (RESIDENT, *FOLLOW):
            name = f"`follow = {way}`" if way in FOLLOW else way
            rows.append((name, *(str(speeds[way]) for speeds in self.speeds.values())))
        rows.append(("`auto` against the better of `on` and `off`", *(self.against(column) for column in self.speeds)))
        table(*rows)

    def failed(self):
        return any(speeds.failure for ways in self.speeds.values() for speeds in ways.values())


def wanted(words):
    """LLAMA_BENCH GGUF_PY [COLUMN…] as the program, the folder, the columns."""
    if len(words) < 2:
        sys.exit("bench: --llama takes a llama-bench, the folder gguf-py of its tree, and columns")
    program, gguf_py, *columns = words
    if not os.access(program, os.X_OK) or not pathlib.Path(program).is_file():
        sys.exit(f"bench: {program} is not a program")
    if not (pathlib.Path(gguf_py) / "gguf").is_dir():
        sys.exit(f"bench: {gguf_py} is not llama.cpp's gguf-py: it holds no folder gguf")
    unknown = next((column for column in columns if column not in COLUMNS), None)
    if unknown:
        sys.exit(f"bench: --llama has no column {unknown}: {', '.join(COLUMNS)}")
    return str(pathlib.Path(program).resolve()), gguf_py, columns or list(COLUMNS)


def main(words, simulated=False, rounds=1, leave_mib=LEFT):
    program, gguf_py, columns = wanted(words)
    bench = Bench(simulated)
    if not bench.gpu and not simulated:
        sys.exit("bench: --llama needs a GPU")
    if bench.gpu and not (BUILD / "tests/gpu/gpu_hog").exists():
        sys.exit("bench: --llama needs tests/gpu/gpu_hog; build it where the CUDA Toolkit is")
    llama = Llama(bench, program, columns)
    with tempfile.TemporaryDirectory() as folder:
        models = {kind: pathlib.Path(folder) / f"{kind}.gguf" for kind in {COLUMNS[column][1] for column in columns}}
        for kind, model in models.items():
            make_model(gguf_py, model, kind)
        print(f"llama-bench, tokens per second, on {bench.gpu or 'the SIMULATED GPU (figures say nothing)'}; median of all "
              f"repetitions (least to most); turns: {rounds}; {host_memory()}", flush=True)
        for _ in range(rounds):
            llama.turn(models, (lambda: hog(leave_mib)) if bench.gpu else contextlib.nullcontext)
    print()
    llama.table()
    sys.exit("bench: not all runs have figures" if llama.failed() else 0)

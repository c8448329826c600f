"""
scripts/bench --allocators: training and inference in PyTorch with each of its allocators and less memory than they need, against its
native allocator. Each is to finish with the same results, in at most 1.2 times the time.
"""
import contextlib
import importlib.util
import sys

from benchlib import BUILD, MOVING, TOP, Bench, hog, table
from table_follow import CONTEXT, Jobs, Measured, say_pressure

NATIVE, MOST = "native", 1.2
# By name: words before the job, and variables.
ALLOCATORS = {
    NATIVE: ([], {}),
    "expandable_segments": ([], {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    "cudaMallocAsync": ([], {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}),
    "pluggable": ([str(TOP / "tests/gpu/pluggable_job.py"), str(BUILD / "libspill.so")], {}),
    "spill run --torch": (["--torch"], {}),
}
JOBS = {
    "training": ["train_job.py", "8", "14"],
    "inference": ["infer_job.py", "14"],
}
TIMEOUT = 60  # seconds of a run


def command(allocator, job):
    """Of the job with that allocator, and the variables that go with it."""
    words, variables = ALLOCATORS[allocator]
    script = [str(TOP / "tests/gpu" / JOBS[job][0]), *JOBS[job][1:]]
    if words == ["--torch"]:
        return [str(BUILD / "spill"), "run", "--torch", "--", sys.executable, *script], variables
    return [sys.executable, *words, *script], variables


def ratio(measured, native):
    """Of the native allocator's time, and whether that is as it should be."""
    if not measured.ms or not native.ms:
        return "no figure"
    times = measured.ms / native.ms
    return f"{times:.2f}x" + ("" if times <= MOST else f", MORE THAN {MOST}x")


def measure(jobs, job, times):
    """A row for each allocator."""
    words, _ = command(NATIVE, job)
    asked = [(words, {})]
    for name in ALLOCATORS:
        words, variables = command(name, job)
        asked.append((words, {"chain": MOVING, **variables}))
    with contextlib.closing(jobs.bench.in_turn(asked, TIMEOUT)) as runs:
        enough = jobs.row(job, "enough", Measured(next(runs)))
        peak = enough.value("peak")
        if enough.run.status or not peak:
            return []
        with hog(int(peak / times) + CONTEXT) as taken:
            say_pressure(taken)
            found = {name: jobs.row(job, name, Measured(run, enough)) for name, run in zip(ALLOCATORS, runs)}
    return [(job, name, f"{run.ms:.1f}" if run.ms else "", f"{run.ms / enough.ms:.2f}x" if run.ms else "", ratio(run, found[NATIVE]),
             run.verdict()) for name, run in found.items()]


def main(words, times):
    unknown = [word for word in words if word not in JOBS]
    if unknown:
        sys.exit(f"bench: --allocators has no {unknown[0]}: {', '.join(JOBS)}")
    bench = Bench()
    if not bench.gpu or not importlib.util.find_spec("torch"):
        sys.exit("bench: --allocators needs a GPU and PyTorch")
    jobs = Jobs(bench)
    rows = [("job", "allocator", "step, ms", "of enough memory", "of the native allocator", "results")]
    for job in words or JOBS:
        rows += measure(jobs, job, times)
    jobs.table()
    print(f"at {times} times the memory that is left, ms a step, median of a run")
    table(*rows)
    bad = [row for row in rows[1:] if row[-1] != "equal"]
    sys.exit(0 if len(rows) > 1 and not bad else "bench: not all runs finished with the same results")

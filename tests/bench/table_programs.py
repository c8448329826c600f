"""
scripts/bench --programs: usual programs with less memory than they need, with `movable.follow` off, on and auto, against the same
with enough memory. `auto` is to be as good as the better of the other two, in each.
"""
import contextlib
import importlib.util
import sys

from benchlib import MOVING, TOP, Bench, hog, table
from table_follow import CONTEXT, FIRST, IN_PLACE, WAYS, Jobs, Measured, say_pressure

# By word of the command line: what it is, the job, its arguments before the number of steps, and how many steps.
PROGRAMS = {
    "decode-1": ("language model, one sequence, 4 tokens a step", "program_job.py", ["decode-1"], 12),
    "decode-32": ("language model, 32 sequences, 4 tokens a step", "program_job.py", ["decode-32"], 12),
    "prompt": ("language model, prompts of 4,096 tokens", "program_job.py", ["prompt"], 12),
    "chat": ("language model, prompt of 512 and 8 tokens", "program_job.py", ["chat"], 10),
    "sgd": ("decoder, training by SGD", "program_job.py", ["sgd"], 12),
    "momentum": ("decoder, training by SGD with momentum", "program_job.py", ["momentum"], 12),
    "adamw": ("decoder, training by AdamW", "program_job.py", ["adamw"], 12),
    "encoder": ("encoder, training by AdamW, autocast", "program_job.py", ["encoder"], 12),
    "vision": ("vision transformer, training by AdamW, autocast", "program_job.py", ["vision"], 12),
    "convolutions": ("convolutional net, training by SGD with momentum, autocast", "program_job.py", ["convolutions"], 12),
    "lora": ("language model, fine-tuning of low-rank parts", "program_job.py", ["lora"], 12),
    "turns": ("two language models in turns", "program_job.py", ["turns"], 100),
    "experts": ("mixture of experts, one sequence, 4 tokens a step", "program_job.py", ["experts"], 70),
    "unet": ("U-Net, forward pass", "unet_job.py", [], 10),
    "jax": ("JAX, training by SGD with momentum", "jax_train_job.py", ["512"], 14),
    "captured": ("PyTorch, training captured as one CUDA graph", "captured_job.py", ["train"], 30),
    "compiled": ("PyTorch, forward pass by torch.compile with graphs", "captured_job.py", ["compiled"], 30),
    "cupy": ("CuPy, spectra and products", "cupy_steps_job.py", ["28"], 10),
}
TIMEOUT = 40  # seconds of a run; a run that is cut off tells the steps that it came to
MODULES = ("torch", "transformers", "timm", "torchvision", "peft", "jax", "cupy")


def start_ratio(measured):
    """The longest of the first steps over the median of the later ones."""
    return f"{max(measured.times[:FIRST]) / measured.ms:.1f}" if measured.steps > FIRST else ""


def against_best(ways):
    """`auto` against the better of the other two: 1.10 is 10 % slower."""
    others = {way: run.ms for way, run in ways.items() if way != "auto" and run.ms}
    auto = ways["auto"].ms
    if not auto or not others:
        return ""
    best = min(others, key=others.get)
    return f"{auto / others[best]:.2f} of `{best}`"


def measure(jobs, name, times):
    """The row of a program, or None if it does not run with enough memory."""
    what, script, arguments, steps = PROGRAMS[name]
    command = [sys.executable, str(TOP / "tests/gpu" / script), *arguments]
    asked = [([*command, str(FIRST + 3 if way == IN_PLACE else steps)], {"chain": MOVING, "SPILL_MOVABLE_FOLLOW": way}) for way in WAYS]
    with contextlib.closing(jobs.bench.in_turn([([*command, str(steps)], {}), *asked], TIMEOUT)) as runs:
        enough = jobs.row(name, "enough", Measured(next(runs)))
        peak = enough.value("peak")
        if enough.run.status or not peak:
            return None
        with hog(int(peak / times) + CONTEXT) as taken:
            say_pressure(taken)
            ways = {way: jobs.row(name, f"`follow = {way}`", Measured(run, enough)) for way, run in zip(WAYS, runs)}
    cells = [f"{run.ms:.1f}" if run.ms else run.verdict() for run in ways.values()]
    auto = ways["auto"]
    ratio = f"{auto.ms / enough.ms:.2f}" if auto.ms else ""
    return (f"{what} (`{name}`)", f"{peak / 1024:.2f}", f"{enough.ms:.1f}", *cells, against_best(ways), ratio, start_ratio(auto),
            "; ".join(sorted({run.verdict() for run in ways.values()})))


def wanted(words):
    unknown = [word for word in words if word not in PROGRAMS]
    if unknown:
        sys.exit(f"bench: --programs has no {unknown[0]}: {', '.join(PROGRAMS)}")
    return words or list(PROGRAMS)


def main(words, times):
    names, bench = wanted(words), Bench()
    lacking = [module for module in MODULES if not importlib.util.find_spec(module)]
    if not bench.gpu or "torch" in lacking:
        sys.exit("bench: --programs needs a GPU and PyTorch")
    if lacking:
        print(f"not installed here: {', '.join(lacking)}", flush=True)
    jobs = Jobs(bench)
    rows = [("program", "peak, GiB", "enough memory, ms", *(f"`{way}`" for way in WAYS), "`auto` against the better",
             "`auto` of enough", "longest of the first 3", "results")]
    for name in names:
        found = measure(jobs, name, times)
        rows += [found] if found else []
    jobs.table()
    print(f"at {times} times the memory that is left, ms a step, median of a run")
    table(*rows)
    sys.exit(0 if len(rows) > len(names) else "bench: not all programs have figures")

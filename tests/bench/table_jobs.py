"""scripts/bench --jobs: PyTorch, unmodified, with less memory than it needs, against the same with enough."""
import importlib.util
import sys

from benchlib import LEFT, MIB, MOVING, NEWCOMERS, TOP, Bench, hog, host_memory, table

# What is run, and with what: peak over what is left is 1.4 and 1.9 (facts.md), 1.3 and 2.
TRAIN = {"training, batch 8": ("train_job.py", "8", "6"), "training, batch 12": ("train_job.py", "12", "5")}
DECODE = {"inference, 1.3 times": ("decode_job.py", "12", "128", "128"),
          "inference, 2 times": ("decode_job.py", "21", "128", "96")}
TIMEOUT = 110


def figures(run):
    lines = [line.split() for line in run.stderr.splitlines()]
    found = {line[0]: float(line[1]) for line in lines if len(line) == 2 and line[0] in ("ms", "least", "most", "peak")}
    return found if run.status == 0 and "ms" in found else None


def verdict(run, enough):
    if run.status == 124:
        return f"not finished in {TIMEOUT} s"
    if run.status:
        last = (run.stderr.strip().splitlines() or ["?"])[-1]
        return f"status {run.status}: {last[:60]}"
    if run is enough:
        return "what the others are compared with"
    if run.stdout == enough.stdout:
        return "equal"
    pairs = zip(run.stdout.split(), enough.stdout.split())
    return f"DIFFERENT from word {next((i for i, (mine, theirs) in enumerate(pairs) if mine != theirs), 'the last')}"


def row(name, how, run, enough, base):
    found = figures(run)
    if not found:
        return (name, how, "", "", "", "", verdict(run, enough))
    moved = [run.moves(what) for what in ("demote", "promote")]
    cells = [f"{size / MIB:.0f} MiB, {us / 1e3:.0f} ms" if size else "" for size, us in moved]
    return (name, how, f"{found['ms']:.0f} ({found['least']:.0f} to {found['most']:.0f})",
            f"{found['ms'] / base:.1f}x" if base else "", *cells, verdict(run, enough))


def main(which="all"):
    bench = Bench()
    if not bench.gpu or not importlib.util.find_spec("torch"):
        sys.exit("bench: --jobs needs a GPU and PyTorch")
    jobs = {**(TRAIN if which != "decode" else {}), **(DECODE if which != "train" else {})}
    rows = [("job", "memory", "step, ms (least to most)", "of enough memory", "demoted", "promoted", "losses or tokens")]
    commands = {name: [sys.executable, str(TOP / "tests/gpu" / job[0]), *job[1:]] for name, job in jobs.items()}
    enough = {name: bench.run(command, timeout=TIMEOUT).good(name) for name, command in commands.items()}
    ratios = []
    with hog(LEFT) as taken:
        print(f"{bench.gpu}; another process holds the rest by plain allocations; {taken.said}; "
              f"{host_memory()}\n", flush=True)
        for name, command in commands.items():
            base = figures(enough[name])
            print(f"{name}: peak {base['peak']:.0f} MiB with enough memory: {base['peak'] / taken.free_mib:.2f} times what is left",
                  flush=True)
            rows.append(row(name, "enough", enough[name], enough[name], None))
            rows.append(row(name, "too little, no libspill", bench.run(command, timeout=TIMEOUT), enough[name], base["ms"]))
            times = {}
            for chain in (MOVING,) if name in TRAIN else (MOVING, NEWCOMERS):
                run = bench.run(command, chain=chain, timeout=TIMEOUT)
                rows.append(row(name, f"too little, `{chain}`", run, enough[name], base["ms"]))
                print("  " + " | ".join(rows[-1]), flush=True)
                times[chain] = (figures(run) or {}).get("ms")
                if run.status:
                    print(run.stderr[-1500:])
            if len(times) == 2 and not times[NEWCOMERS]:
                ratios.append(f"{name}: the split of the newcomers does not finish")
            elif len(times) == 2 and times[MOVING]:
                ratio = times[NEWCOMERS] / times[MOVING]
                ratios.append(f"{name}: moving is {ratio:.2f} times as fast as the split of the newcomers")
    print()
    table(*rows)
    print("\n".join(ratios))

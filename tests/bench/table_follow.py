"""
scripts/bench --follow: programs that read what is on the host again and again, with `movable.follow` off (in place), auto and on,
against the same with enough memory and against the link.
"""
import importlib.util
import sys

from benchlib import LEFT, MIB, MOVING, TOP, Bench, hog, host_memory, table
from table_decode import CONSTANTS, NAMES, SIZES, limit_us
from table_jobs import DECODE, figures

RESERVE = 64  # MiB, the default of device.reserve
CONTEXT = 528  # MiB of a process that has only a context (docs/measurements.md)
FIRST = 3  # steps that are not counted: libspill learns
WAYS = ("off", "auto", "on")
IN_PLACE = "off"
MATMUL = {1: 30, 64: 30, 512: 20, 4096: 12}  # steps by batch
TRAIN = {8: (12, 450), 12: (10, 1200)}  # steps by batch, ms that a step may take
UNET_TIMES, UNET_MOST = 1.5, 4  # peak over what is left; ms of a forward pass over those with enough memory
HEAD = ("job", "memory", "step, ms (least to most)", "of resident", "most on host, MiB", "demoted, MiB", "promoted, MiB",
        "a step, MiB", "results")


class Measured:
    """A run of a job: `ms`, `least` and `most` of its steps without the first, if it was cut off of those that it came to."""

    def __init__(self, run, enough=None):
        self.run, self.words = run, [line.split() for line in run.stderr.splitlines()]
        self.times = [float(words[2]) for words in self.words if len(words) == 3 and words[0] == "step"]
        counted = sorted(self.times[FIRST:] or self.times[-1:])
        self.steps = len(self.times)
        self.ms, self.least, self.most = (counted[len(counted) // 2], counted[0], counted[-1]) if counted else (None,) * 3
        self.enough = enough

    def value(self, name):
        return next((float(words[1]) for words in self.words if len(words) == 2 and words[0] == name), None)

    def verdict(self):
        """Runs may have fewer steps than the one with enough memory; those they have must be the same."""
        if self.enough is None:
            return "what the others are compared with"
        mine, theirs = self.run.stdout.splitlines(), self.enough.run.stdout.splitlines()
        wrong = next((i for i, (one, other) in enumerate(zip(mine, theirs)) if one != other), None)
        if wrong is not None:
            return f"DIFFERENT in step {wrong}"
        so_far = f"{len(mine)} equal" if mine else "none"
        if self.run.status == 124:
            return f"cut off; {so_far}"
        if self.run.status:
            return f"status {self.run.status}: {(self.run.stderr.strip().splitlines() or ['?'])[-1][:60]}; {so_far}"
        return "equal" if mine else "NOTHING"

    def on_host(self):
        last = self.run.records[-1] if self.run.records else {}
        return f"{last['peak']['host_bytes'] / MIB:.0f}" if last.get("kind") == "exit" else ""

    def cells(self):
        base = self.enough and self.enough.ms
        times = f"{self.ms:.1f} ({self.least:.1f} to {self.most:.1f})" if self.steps else ""
        if not self.enough:
            return times, "", "", "", "", "", self.verdict()
        demoted, promoted = (self.run.moves(what)[0] / MIB for what in ("demote", "promote"))
        return (times, f"{self.ms / base:.2f}x" if self.steps else "", self.on_host(), f"{demoted:.0f}", f"{promoted:.0f}",
                f"{promoted / self.steps:.0f}" if self.steps else "", self.verdict())


class Jobs:
    """Runs jobs of tests/gpu and keeps their rows; each is printed as it comes: a run that is cut off says what it can."""

    def __init__(self, bench):
        self.bench, self.rows = bench, [HEAD]
        copies = self.job("copy_job.py").good("copy_job.py").values()
        self.copy = {name: copies[name] for name in ("in", "out", "both")}
        print(f"{bench.gpu}; {host_memory()}; a pinned GiB by PyTorch: in {self.copy['in']:.1f} ms, out {self.copy['out']:.1f}, "
              f"both ways at once {self.copy['both']:.1f}", flush=True)

    def job(self, script, *arguments, **options):
        command = [sys.executable, str(TOP / "tests/gpu" / script), *(str(argument) for argument in arguments)]
        return self.bench.run(command, **{"timeout": 40, **options})

    def row(self, name, memory, measured):
        self.rows.append((name, memory, *measured.cells()))
        print("  " + " | ".join(self.rows[-1]), flush=True)
        if measured.run.status not in (0, 124):
            print(measured.run.stderr[-1500:], flush=True)
        return measured

    def enough(self, name, script, *arguments):
        """Without libspill: the base of all the others."""
        return self.row(name, "enough", Measured(self.job(script, *arguments).good(name)))

    def under_pressure(self, name, enough, script, arguments, ways=WAYS, timeout=40):
        """`arguments`: of the job, by way. Answers what was measured, by way."""
        return {way: self.row(name, f"`follow = {way}`", Measured(self.job(
            script, *arguments(way), chain=MOVING, timeout=timeout, SPILL_MOVABLE_FOLLOW=way), enough)) for way in ways}

    def table(self):
        print()
        table(*self.rows)
        self.rows = [HEAD]


def against(what, value, most, unit="x"):
    return f"{what}: {value:.2f}{unit}, {'within' if value <= most else 'MORE THAN'} {most}{unit}"


def say_pressure(taken):
    print(f"another process holds the rest by plain allocations; {taken.said}", flush=True)


def report_matmul(jobs, found, enough):
    """
    The limit: what is on host has to come once a step, at best while the products of what is there are made (all of the copy
    hidden), at worst before them (none).
    """
    copy, goals = jobs.copy["in"], []
    rows = [("batch", "memory", "step, ms", "beyond resident", "of a copy of 1 GiB", "step of the copy",
             "of the limit, all hidden", "none hidden")]
    for batch, ways in found.items():
        base = enough[batch].ms
        rows.append((batch, "enough", f"{base:.1f}", "", f"{copy:.1f} ms", "", f"{max(base, copy):.1f} ms",
                     f"{base + copy:.1f} ms"))
        times = {way: run.ms for way, run in ways.items() if run.ms and not run.run.status}
        for way, ms in times.items():
            rows.append((batch, f"`follow = {way}`", f"{ms:.1f}", f"{ms - base:+.1f}", f"{(ms - base) / copy:.2f}x",
                         f"{ms / copy:.2f}x", f"{ms / max(base, copy):.2f}x", f"{ms / (base + copy):.2f}x"))
        if batch == 1 and {"auto", IN_PLACE} <= set(times):
            goals.append(against("batch 1, auto of in place", times["auto"] / times[IN_PLACE], 1.05))
        for way in (way for way in times if batch >= 512 and way != IN_PLACE):
            goals.append(against(f"batch {batch}, {way}, beyond resident of the copy", (times[way] - base) / copy, 2))
            goals.append(against(f"batch {batch}, {way}, step of the copy", times[way] / copy, 2))
    table(*rows)
    print("\n".join(goals), flush=True)


def matmul(jobs, which):
    """
    1 GiB of the weights is to be on the host. What the job needs it says itself (run_steps), with enough memory on a device that
    nobody else uses: all that is in use in the end, so context, cuBLAS's workspace and code are in it. libspill keeps
    device.reserve free beyond that. So leave needs + reserve - 1 GiB: that much is missing. Chunks are whole, so it may be one
    more.
    """
    batches = {batch: steps for batch, steps in MATMUL.items() if not which or batch in which}
    enough = {batch: jobs.enough(f"products, batch {batch}", "matmul_job.py", batch, steps) for batch, steps in batches.items()}
    needs = max(run.value("needs") for run in enough.values())
    with hog(int(needs) + RESERVE - 1024) as taken:
        say_pressure(taken)
        print(f"{needs:.0f} MiB are needed, context, workspace and code with them", flush=True)
        found = {batch: jobs.under_pressure(f"products, batch {batch}", enough[batch], "matmul_job.py",
                                            lambda way, batch=batch: (batch, batches[batch])) for batch in batches}
    jobs.table()
    report_matmul(jobs, found, enough)


def missing_gib(enough, left):
    """What the job cannot have on the device at its peak, by PyTorch's account."""
    return max(0, enough.value("peak") + CONTEXT - left) / 1024


def train(jobs, which):
    """What does not fit has to go and come twice a step: on the way forward and on the way back (facts.md)."""
    batches = {batch: found for batch, found in TRAIN.items() if not which or batch in which}
    enough = {batch: jobs.enough(f"training, batch {batch}", "train_job.py", batch, steps)
              for batch, (steps, _) in batches.items()}
    with hog(LEFT) as taken:
        say_pressure(taken)
        for batch, (steps, most) in batches.items():
            base, name = enough[batch], f"training, batch {batch}"
            ways = jobs.under_pressure(name, base, "train_job.py",
                                       lambda way, batch=batch, steps=steps: (batch, FIRST + 2 if way == IN_PLACE else steps))
            size = missing_gib(base, taken.free_mib)
            copies = 2 * size * jobs.copy["both"]
            print(f"{name}: peak {base.value('peak') / taken.free_mib:.2f} times what is left, {size:.2f} GiB are missing; the "
                  f"limit is {max(copies, base.ms):.0f} ms with all copies hidden, {copies + base.ms:.0f} with none")
            for way in (way for way in WAYS if way != IN_PLACE and ways[way].ms):
                print("  " + against(way, ways[way].ms, most, " ms"), flush=True)
    jobs.table()


def unet(jobs, _):
    """What the other process leaves is made such that the peak is 1.5 times of it, whatever cuDNN takes for itself."""
    name = "U-Net, forward"
    enough = jobs.enough(name, "unet_job.py", 12)
    with hog(int(enough.value("peak") / UNET_TIMES)) as taken:
        say_pressure(taken)
        size = missing_gib(enough, taken.free_mib)
        copies = size * jobs.copy["both"]
        print(f"peak {enough.value('peak'):.0f} MiB, {enough.value('peak') / taken.free_mib:.2f} times what is left; needs "
              f"{enough.value('needs'):.0f}; {size:.2f} GiB are missing; the limit is {max(copies, enough.ms):.0f} ms with all "
              f"copies hidden, {copies + enough.ms:.0f} with none", flush=True)
        # In place last: it may take seconds a pass, and is cut off then.
        ways = jobs.under_pressure(name, enough, "unet_job.py", lambda way: (5 if way == IN_PLACE else 10,),
                                   ("auto", "on", IN_PLACE), 30)
    jobs.table()
    for way in (way for way in ways if way != IN_PLACE and ways[way].ms):
        print(against(f"{way} of resident", ways[way].ms / enough.ms, UNET_MOST))


def decode(jobs, _, rounds=3):
    """The program of --decode: what reads once must not become slower by following, and may become faster."""
    bench, sizes = jobs.bench, SIZES["gpu"]
    program = bench.program("decode", *(word for name, value in zip(NAMES, sizes) for word in (f"--{name}", value)))
    machine = bench.run(bench.program("decode", "--bandwidth", 1024)).good("bandwidth").values()
    enough = bench.run(program).good("decode with enough memory").values()
    runs = {way: [] for way in WAYS}
    with hog(LEFT) as taken:
        say_pressure(taken)
        alone = bench.run(program)  # out of memory; it says what it finds free before that
        limit, host = limit_us(enough, float(alone.stdout.split()[1]), (machine["host_read"], machine["device_read"]))
        print(f"at least {host / MIB:.0f} MiB on host; least step {limit / 1e3:.2f} ms by the rates measured ("
              f"{machine['host_read']:.1f} and {machine['device_read']:.0f} GB/s; facts.md has {CONSTANTS[0]} and "
              f"{CONSTANTS[1]:.0f})", flush=True)
        for number in range(rounds):
            for way, done in runs.items():
                if way == "on" and number:  # once, to know: it moves what is read once
                    continue
                run = bench.run(program, chain=MOVING, timeout=60, SPILL_MOVABLE_FOLLOW=way)
                if run.status:
                    print(f"  follow = {way}: status {run.status}: {run.stderr[-500:]}", flush=True)
                    continue
                done.append(run.values() | {what: run.moves(what)[0] for what in ("demote", "promote")})
                print(f"  follow = {way}: {done[-1]['step_us'] / 1e3:.2f} ms a step", flush=True)
        inference(jobs, "inference, 1.3 times", ("off", "auto"))
    rows = [("decode", "step, ms (least to most)", "of the limit", "demoted, MiB", "promoted, MiB", "data")]
    rows.append(("enough", f"{enough['step_us'] / 1e3:.2f}", "", "", "", ""))
    for way, done in runs.items():
        for run in sorted(done, key=lambda run: run["step_us"])[len(done) // 2:len(done) // 2 + 1]:
            right = run["wrong_words"] + run["wrong_steps"] == 0
            step, least, most = (f"{run[name] / 1e3:.2f}" for name in ("step_us", "least_us", "most_us"))
            rows.append((f"`follow = {way}`, median of {len(done)}", f"{step} ({least} to {most})",
                         f"{run['step_us'] / limit:.2f}x", f"{run['demote'] / MIB:.0f}", f"{run['promote'] / MIB:.0f}",
                         "right" if right else "WRONG"))
    print()
    table(*rows)


def inference(jobs, name, ways):
    """decode_job.py: with a cache that grows by an allocation a layer and step. pre: the other process holds its memory"""
    script, *arguments = DECODE[name]
    runs = {way: jobs.job(script, *arguments, chain=MOVING, timeout=60, SPILL_MOVABLE_FOLLOW=way) for way in ways}
    base = runs[IN_PLACE]
    for way, run in runs.items():
        found = figures(run)
        moved = ", ".join(f"{what}d {run.moves(what)[0] / MIB:.0f} MiB" for what in ("demote", "promote"))
        told = f"{found['ms']:.1f} ms ({found['least']:.1f} to {found['most']:.1f})" if found else f"status {run.status}"
        same = "the same tokens" if run.stdout == base.stdout and run.stdout else "DIFFERENT tokens"
        print(f"{name}, follow = {way}: {told}; {moved}; {same}", flush=True)


PARTS = {"matmul": matmul, "train": train, "unet": unet, "decode": decode}


def main(words):
    """`words`: a part, and of matmul and train which batches."""
    part, batches = words[0] if words else None, {int(word) for word in words[1:] if word.isdigit()}
    known = {"matmul": MATMUL, "train": TRAIN}.get(part, {})
    if words and (part not in PARTS or len(batches) < len(words) - 1 or not batches <= set(known)):
        sys.exit(f"bench: --follow takes one of {', '.join(PARTS)}, and matmul and train which of their batches: "
                 f"{', '.join(map(str, MATMUL))}; {', '.join(map(str, TRAIN))}")
    bench = Bench()
    if not bench.gpu or not importlib.util.find_spec("torch"):
        sys.exit("bench: --follow needs a GPU and PyTorch")
    jobs = Jobs(bench)
    for name in [part] if part else PARTS:
        PARTS[name](jobs, batches)

"""scripts/bench --decode: a program that decodes, with less memory than it needs, against the physical limit of its step."""
from benchlib import LEFT, MIB, MOVING, NEWCOMERS, OUT_OF_MEMORY, Bench, hog, host_memory, table

CONSTANTS = (51.4, 4650.0)  # GB/s: host memory read in place, device memory (shared/design/facts.md)
SIZES = {"gpu": (7168, 2048, 4, 600, 100, 20), "sim": (56, 16, 4, 6, 2, 3)}  # MiB, times, MiB, MiB, steps
NAMES = ("weights", "buffer", "times", "scratch", "grow", "steps")


def limit_us(run, free, rates):
    """
    Least time of a step with `free` bytes of device memory: what is not on the device is what is re-read the least, first
    weights (read once a step), then scratch (read and written), then the buffer; both memories take their time in turn.
    """
    host_rate, device_rate = rates
    parts = [(1, run["weights"]), (2, run["scratch"]), (run["times"], run["buffer"])]
    missing = max(0, sum(size for _, size in parts) - free)
    host = device = 0
    for passes, size in sorted(parts):
        out = min(missing, size)
        missing -= out
        host, device = host + passes * out, device + passes * (size - out)
    return host / host_rate / 1e3 + device / device_rate / 1e3, host


def cells(run, limits):
    step = run["step_us"]
    return [f"{step / 1e3:.2f} ({run['least_us'] / 1e3:.2f} to {run['most_us'] / 1e3:.2f})", f"{run['rate']:.0f}",
            *(f"{step / limit:.2f}x" for limit in limits), f"{run['slowest_growth_us'] / 1e3:.1f}",
            "right" if run["wrong_words"] + run["wrong_steps"] == 0 else "WRONG"]


def main(simulated, leave_mib=LEFT, rounds=3):
    bench = Bench(simulated)
    sizes = SIZES["gpu" if bench.gpu else "sim"]
    arguments = [word for name, value in zip(NAMES, sizes) for word in (f"--{name}", value)]
    program = bench.program("decode", *arguments)
    small = {} if bench.gpu else {"SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_DEVICE_RESERVE": "2MiB"}
    print(f"decode: weights {sizes[0]} MiB once a step, buffer {sizes[1]} MiB {sizes[2]} times, scratch grown to {sizes[3]} MiB "
          f"by cuMemCreate, on {bench.gpu or 'the SIMULATED GPU (figures say nothing)'}")
    machine = bench.run(bench.program("decode", "--bandwidth", 1024 if bench.gpu else 32)).good("bandwidth").values()
    print(f"measured in this run: device {machine['device_read']:.0f} GB/s read, {machine['device_rewrite']:.0f} read and "
          f"written; host read in place {machine['host_read']:.1f} GB/s")
    print(host_memory())
    enough = bench.run(program).good("decode with enough memory").values()
    if bench.gpu:
        with hog(leave_mib) as taken:
            print(f"another process holds the rest by plain allocations; {taken.said}")
            runs, alone = under_pressure(bench, program, rounds, small)
    else:
        small["vram"] = "60MiB"
        runs, alone = under_pressure(bench, program, rounds, small)
    free = alone["free"]
    measured, host = limit_us(enough, free, (machine["host_read"], machine["device_read"]))
    stated, _ = limit_us(enough, free, CONSTANTS)
    print(f"device memory that the program finds free (its context taken off): {free / MIB:.0f} MiB; so at least "
          f"{host / MIB:.0f} MiB on host; least step {measured / 1e3:.2f} ms by the rates measured, {stated / 1e3:.2f} ms by "
          f"{CONSTANTS[0]} and {CONSTANTS[1]:.0f} GB/s\n")
    rows = [("", "step, ms (least to most)", "GB/s", "of the limit, measured",
             f"of the limit, {CONSTANTS[0]} and {CONSTANTS[1]:.0f}", "slowest growth, ms", "data"),
            ("enough memory, no libspill", *cells(enough, (measured, stated))[:2], "", "", *cells(enough, (1, 1))[4:]),
            ("alone under pressure", "out of memory" if alone["status"] == OUT_OF_MEMORY else f"status {alone['status']}",
             "", "", "", "", "")]
    steps = {}
    for chain, done in runs.items():
        done.sort(key=lambda run: run["step_us"])
        middle = done[len(done) // 2]
        steps[chain] = middle["step_us"]
        rows.append((f"`oom.chain = {chain}`", *cells(middle, (measured, stated))))
    table(*rows)
    print(f"moving against the split of the newcomers: {steps[NEWCOMERS] / steps[MOVING]:.2f} times as fast "
          f"(medians of {rounds} runs, in turns)")
    for chain, done in runs.items():
        each = ", ".join("{:.2f}".format(run["step_us"] / 1e3) for run in done)
        print(f"`{chain}`: {each} ms a step; demoted {done[0]['demoted'] / MIB:.0f} MiB in {done[0]['demoted_us'] / 1e3:.0f} ms")


def under_pressure(bench, program, rounds, variables):
    """Runs of both chains in turns, and what the program alone comes to."""
    alone = bench.run(program, **{name: value for name, value in variables.items() if name == "vram"})
    first = {"free": float(alone.stdout.split()[1]), "status": alone.status}
    runs = {MOVING: [], NEWCOMERS: []}
    for _ in range(rounds):
        for chain, done in runs.items():
            run = bench.run(program, chain=chain, **variables)
            bytes_moved, us = run.moves("demote")
            done.append(run.good(f"decode with {chain}").values() | {"demoted": bytes_moved, "demoted_us": us})
    return runs, first

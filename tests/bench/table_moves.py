"""scripts/bench --moves: what moving 2 GiB costs by bare driver calls, and by libspill, in one run."""
import statistics

from benchlib import MIB, MOVING, Bench, table

BARE = ("demote_total", "demote_create", "demote_copy", "demote_map", "demote_release", "promote_total", "promote_create",
        "promote_copy", "promote_map", "promote_release", "copy_out", "copy_back")


def spread(times):
    return f"{statistics.median(times) / 1e3:.1f} ({min(times) / 1e3:.1f} to {max(times) / 1e3:.1f})"


def scaled(moved, mib):
    """Microseconds for `mib`, of (bytes, microseconds)."""
    size, us = moved
    return us * mib * MIB / size if size else float("nan")


def main(simulated, rounds=5):
    bench = Bench(simulated)
    mib, chunk = (2048, 64) if bench.gpu else (32, 4)
    print(f"moving {mib} MiB in chunks of {chunk}, on {bench.gpu or 'the SIMULATED GPU (figures say nothing)'}; ms, median of "
          f"{rounds} rounds in turns (least to most)")
    bare = {name: [] for name in BARE}
    ours = {ahead: {"demote": [], "promote": [], "allocation": [], "until_back": [], "moved": []} for ahead in (False, True)}
    settings = {"SPILL_MOVABLE_ENABLE": "on", "SPILL_DEVICE_LIMIT": f"{mib}MiB", "SPILL_MOVABLE_CHUNK": f"{chunk}MiB"}
    for _ in range(rounds):
        values = bench.run(bench.program("moves", "bare", mib, chunk)).good("moves bare").values()
        for name, times in bare.items():
            times.append(values[name])
        for ahead, series in ours.items():
            # On the simulated GPU host memory is not taken until it is touched, so there is nothing to wait for.
            extra = {"SPILL_HOST_AHEAD": f"{mib}MiB"} if ahead else {}
            arguments = ("through", mib, mib) if ahead and bench.gpu else ("through", mib)
            run = bench.run(bench.program("moves", *arguments), chain=MOVING, **settings, **extra).good("moves through libspill")
            values = run.values()
            if not values.get("ahead_ready", 1):
                print("note: host.ahead was not ready within 5 s")
            series["moved"].append(run.moves("demote")[0])
            for what in ("demote", "promote"):
                series[what].append(scaled(run.moves(what), mib))
            for what in ("allocation", "until_back"):
                series[what].append(values[what])
    report(mib, bare, ours)


def report(mib, bare, ours):
    middle = {name: statistics.median(times) for name, times in bare.items()}
    rows = [("", "demotion", "promotion")]
    for part, words in (("create", "memory made"), ("copy", "copied"), ("map", "mapped"), ("release", "old memory released")):
        rows.append((f"bare driver calls: {words}", spread(bare[f"demote_{part}"]), spread(bare[f"promote_{part}"])))
    rows.append(("bare driver calls, all", spread(bare["demote_total"]), spread(bare["promote_total"])))
    rows.append(("the copies alone", spread(bare["copy_out"]), spread(bare["copy_back"])))
    for ahead, name in ((False, "libspill"), (True, "libspill, `host.ahead` = all of it")):
        demote, promote = ours[ahead]["demote"], ours[ahead]["promote"]
        rows.append((name, spread(demote), spread(promote)))
        rows.append((f"{name}: against the bare calls", f"{statistics.median(demote) / middle['demote_total']:.2f}x",
                     f"{statistics.median(promote) / middle['promote_total']:.2f}x"))
        rows.append((f"{name}: against the copies alone", f"{statistics.median(demote) / middle['copy_out']:.2f}x",
                     f"{statistics.median(promote) / middle['copy_back']:.2f}x"))
        rows.append((f"{name}: the allocation that made it necessary, and the time until it was back",
                     spread(ours[ahead]["allocation"]), spread(ours[ahead]["until_back"])))
    table(*rows)
    print(f"libspill's times are the `us` of its log's move lines, for {mib} MiB; it moved "
          f"{min(ours[False]['moved']) / MIB:.0f} MiB, and {min(ours[True]['moved']) / MIB:.0f} with chunks ahead")

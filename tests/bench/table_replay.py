"""scripts/bench --replay: what deciding a long log again costs, against reading its bytes and against its report, in one run; needs no GPU."""
import pathlib
import statistics
import subprocess
import sys
import tempfile

from benchlib import BUILD, TOP, used


def main(records, rounds):
    with tempfile.TemporaryDirectory() as folder:
        log, policy = pathlib.Path(folder, "long.jsonl"), pathlib.Path(folder, "policy.conf")
        policy.write_text("[device]\nreserve = 0\n", encoding="utf-8")
        with log.open("w", encoding="utf-8") as out:
            subprocess.run([sys.executable, str(TOP / "tests/bench/cached_log.py"), str(records)], stdout=out, check=True)
        replay = [str(BUILD / "spill"), "replay", str(log), "-p", str(policy)]
        commands = {"wc -l": ["wc", "-l", str(log)], "report": [str(BUILD / "spill"), "report", str(log)], "replay": replay,
                    "replay, a quarter too small": [*replay, "--vram", "18GiB"]}
        times = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(used(command))
        base = statistics.median(times["wc -l"])
        print(f"a log of {records} records, {log.stat().st_size >> 20} MiB; seconds of one core, median of {rounds} rounds in turns (least to most)")
        print("| command | seconds | against wc -l | records a second |\n|---|---|---|---|")
        for name, series in times.items():
            middle = statistics.median(series)
            print(f"| {name} | {middle:.2f} ({min(series):.2f} to {max(series):.2f}) | {middle / max(base, 0.01):.0f} | {records / max(middle, 1e-6):,.0f} |")

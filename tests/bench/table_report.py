"""scripts/bench --report: what a page of a long log costs, against its text and --json, in one run; needs no GPU."""
import pathlib
import statistics
import subprocess
import sys
import tempfile

from benchlib import BUILD, TOP, used

FORMS = {"text": [], "--json": ["--json"], "--html": ["--html"]}


def main(records, rounds):
    with tempfile.TemporaryDirectory() as folder:
        log, page = pathlib.Path(folder, "long.jsonl"), pathlib.Path(folder, "page.html")
        with log.open("w", encoding="utf-8") as out:
            subprocess.run([sys.executable, str(TOP / "tests/bench/long_log.py"), str(records)], stdout=out, check=True)
        times = {form: [] for form in FORMS}
        for _ in range(rounds):
            for form, words in FORMS.items():
                path = [str(page)] if form == "--html" else []
                times[form].append(used([str(BUILD / "spill"), "report", *words, *path, str(log)]))
        base = statistics.median(times["text"])
        print(f"spill report of {records} records, {log.stat().st_size >> 20} MiB; seconds of one core, median of {rounds} rounds in turns "
              "(least to most)")
        print("| form | seconds | against text | records a second |\n|---|---|---|---|")
        for form, all_times in times.items():
            middle = statistics.median(all_times)
            print(f"| {form} | {middle:.2f} ({min(all_times):.2f} to {max(all_times):.2f}) | {middle / base:.2f} | {records / middle:,.0f} |")
        print(f"the page has {page.stat().st_size >> 10} KiB")

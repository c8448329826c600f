"""Searches with libFuzzer: search.py BUILD FOLDER [--minutes N] [--jobs N] [NAME…]

The targets and their inputs are those of tests/fuzz/meson.build, as BUILD knows them; it needs `ninja searches` before. All run at
once, or --jobs of them, each for N minutes (2). New inputs stay in FOLDER/NAME, and the next search starts from these as well.
FOLDER/NAME.log has libFuzzer's own lines. An input that fails is FOLDER/NAME-crash-… or the like. Exit status 1: there is one.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Targets write small files, which a disk would make slow.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LIMITS = ["-max_len=8192", "-timeout=10", "-rss_limit_mb=2048"]


def targets(build):
    """name: (the plain program, its inputs)"""
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True, capture_output=True, text=True).stdout)
    return {test["name"].removeprefix("fuzz "): (test["cmd"][0], [pathlib.Path(build, path) for path in test["cmd"][2:]])
            for test in tests if test["name"].startswith("fuzz ")}


def last(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def search(name, program, inputs, folder, seconds, environment):
    kept = folder / name
    kept.mkdir(parents=True, exist_ok=True)
    for path in inputs:
        shutil.copy(path, kept)
    words = pathlib.Path(program).with_name(f"{name}.dict")
    log = folder / f"{name}.log"
    with open(log, "wb") as out:
        status = subprocess.run(
            [f"{program}_libfuzzer", f"-max_total_time={seconds}", *LIMITS, "-print_final_stats=1", f"-artifact_prefix={folder}/{name}-",
             *([f"-dict={words}"] if words.exists() else []), kept], stdout=out, stderr=out, env=environment, check=False).returncode
    text = log.read_text(errors="replace")
    row = (f"{name:10} {last(r'stat::number_of_executed_units: +([0-9]+)', text):12} executions, {last(r' cov: ([0-9]+)', text):6} edges, "
           f"{len(list(kept.iterdir())):5} inputs{'' if status == 0 else ': FAILED'}")
    print(row, flush=True)
    if status:
        print(text[re.search(r"^(fuzz:|==[0-9]+==|.* runtime error:)|\Z", text, re.M).start():], flush=True)
    return status == 0


def main():
    words = argparse.ArgumentParser()
    words.add_argument("build")
    words.add_argument("folder", type=pathlib.Path)
    words.add_argument("--minutes", type=float, default=2)
    words.add_argument("--jobs", type=int)
    words.add_argument("names", nargs="*")
    words = words.parse_intermixed_args()
    known = targets(words.build)
    chosen = words.names or sorted(known)
    if not known or set(chosen) - set(known):
        sys.exit(f"search.py: the targets are: {' '.join(sorted(known))}")
    with tempfile.TemporaryDirectory(dir=MEMORY) as scratch, concurrent.futures.ThreadPoolExecutor(words.jobs or len(chosen)) as pool:
        environment = {**os.environ, "TMPDIR": scratch, "UBSAN_OPTIONS": "print_stacktrace=1"}
        good = list(pool.map(lambda name: search(name, *known[name], words.folder, int(words.minutes * 60), environment), chosen))
    sys.exit(not all(good))


main()

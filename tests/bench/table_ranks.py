"""scripts/bench --ranks: what many processes of one job cost together, on simulated GPUs: start, logs, calls of the file system, report."""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import BUILD, spread, table

# A device of 4 MiB and three allocations of 2 MiB, of which one spills. Then, if it is to be held, it waits until a FIFO is read.
WORDS, HOLD, END = "retain:0 alloc:a:2m:3", "stderr:{}", "free:a"
VARIABLES = {"SPILL_SIM_VRAM": "4MiB", "SPILL_DEVICE_RESERVE": "0", "SPILL_HOST_RESERVE": "0", "SPILL_LOG_STDERR": "off",
             "SPILL_HOST_LIMIT": "64GiB"}
# Calls that reach the file system of the log, HOME or the policy. Of others, such as those for /proc and /dev/shm, none leaves the node.
CALLS = ("openat,open,stat,newfstatat,fstat,lstat,statx,access,mkdir,readlink,write,pwrite64,fsync,fdatasync,flock,unlink,unlinkat,rename,"
         "getdents64,ftruncate,pread64")
LOCAL = re.compile(r'["<]/(proc|sys|dev|run)/')


def environment(folder, rank, count, preload=True, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SPILL_", "LD_"))}
    clean |= VARIABLES | {"HOME": str(folder), "LD_LIBRARY_PATH": str(BUILD / "tests/sim")}
    clean |= {"RANK": str(rank), "WORLD_SIZE": str(count), "SLURM_JOB_ID": "17"}
    if preload:
        clean |= {"LD_PRELOAD": str(BUILD / "libspill.so"), "SPILL_LOG": f"{folder}/logs/"}
    clean |= more
    return {name: value for name, value in clean.items() if value is not None}


def command(fifo=None):
    words = [*WORDS.split(), *([HOLD.format(fifo)] if fifo else []), *END.split()]
    return [str(BUILD / "tests/preload/script"), str(BUILD / "tests/sim/kernels.so"), *words]


def start(folder, count, fifo=None, **options):
    return [subprocess.Popen(command(fifo), env=environment(folder, rank, count, **options), stdout=subprocess.DEVNULL)
            for rank in range(count)]


def end(processes):
    """Processor seconds of each, after all have ended well."""
    used = []
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"bench: a rank ended with {process.returncode}")
        used.append(usage.ru_utime + usage.ru_stime)
    return used


# All that a rank asks for fits, or some of it spills and moves.
VARIANTS = {"without": {"preload": False}, "fits": {"SPILL_SIM_VRAM": "64MiB"}, "spills": {}}


def starts(count, rounds):
    """All of them as fast as they can be started, the variants in turns."""
    walls, each = {name: [] for name in VARIANTS}, {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name, options in VARIANTS.items():
            with tempfile.TemporaryDirectory() as folder:
                before = time.monotonic()
                each[name].append(1e3 * statistics.median(end(start(folder, count, **options))))
                walls[name].append(time.monotonic() - before)
    return [f"{count}", *(spread(walls[name], 2) for name in VARIANTS), *(spread(each[name], 1) for name in VARIANTS)]


def wait_for_logs(folder, count):
    """Until each rank has spilled: that line is in the file before the call returns."""
    while True:
        logs = list(pathlib.Path(folder, "logs").glob("*.jsonl"))
        if len(logs) == count and all('"reason":"oom"' in log.read_text(encoding="utf-8") for log in logs):
            return logs
        time.sleep(0.1)


def report(folder, words):
    """Seconds and MiB of memory of one report."""
    process = subprocess.Popen([str(BUILD / "spill"), "report", *words, f"{folder}/logs"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return f"{usage.ru_utime + usage.ru_stime:.2f}", f"{usage.ru_maxrss >> 10}"


def together(count):
    """All alive at once, each with its log and its part of host.limit."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = f"{folder}/fifo"
        os.mkfifo(fifo)
        processes = start(folder, count, fifo)
        logs = wait_for_logs(folder, count)
        reader = os.open(fifo, os.O_RDONLY)
        end(processes)
        os.close(reader)
        sizes = [log.stat().st_size for log in logs]
        alone = sum("host-share" in log.read_text(encoding="utf-8").split("\n", 1)[1] for log in logs)
        print(f"{count} ranks alive at once: {len(logs)} files, {sum(sizes) / 1024:,.0f} KiB; bytes of a log, median (least to most): "
              f"{spread(sizes, 0)}; {alone} of them count alone toward host.limit\n")
        rows = [("spill report", "seconds of one core", "MiB of memory")]
        rows += [(words[0] if words else "text", *report(folder, words)) for words in (["--summary"], [], ["--json"], ["--html", f"{folder}/page.html"])]
        table(*rows)


def calls(rank, **more):
    """Counts of the calls that may leave the node, by name, of one rank; strace's own words."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "logs").mkdir()
        counts = {}
        for preload in (False, True):
            trace = f"{folder}/trace"
            variables = [word for name, value in environment(folder, rank, 4, preload, **more).items() for word in ("-E", f"{name}={value}")]
            subprocess.run(["strace", "-f", "-y", "-o", trace, "-e", f"trace={CALLS}", *variables, *command()], stdout=subprocess.DEVNULL, check=True)
            for line in pathlib.Path(trace).read_text(encoding="utf-8", errors="replace").splitlines():
                found = re.match(r"\d+\s+(\w+)\(", line)
                if found and not LOCAL.search(line):
                    counts[found[1]] = counts.get(found[1], 0) + (1 if preload else -1)
        return {name: number for name, number in sorted(counts.items()) if number}


def shared_calls():
    if not shutil.which("strace"):
        print("no strace here: the calls of the file system are not counted\n")
        return
    kinds = {"rank 3, a folder that exists": {}, "rank 3, the default folder": {"SPILL_LOG": None}, "no log": {"SPILL_LOG": "off"}}
    counted = {kind: calls(3, **more) for kind, more in kinds.items()}
    names = sorted({name for counts in counted.values() for name in counts})
    table(("calls more than without libspill, not for /proc, /sys and /dev", *names),
          *((kind, *(counts.get(name, 0) for name in names)) for kind, counts in counted.items()))


def metrics():
    with tempfile.TemporaryDirectory() as folder:
        end(start(folder, 1, SPILL_LOG_METRICS=f"{folder}/rank.prom"))
        text = pathlib.Path(folder, "rank.prom").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        print(f"log.metrics of a rank with one device: {len(lines)} series, {len(text)} bytes\n")


def main(most, rounds):
    print(f"ranks of a job on simulated GPUs; {os.cpu_count()} cores; median of {rounds} rounds in turns (least to most)\n")
    counts = [count for count in (1, 10, 100, 1000, 10000) if count < most] + [most]
    table(("ranks", *(f"{what}{name}" for what in ("seconds until all have ended: ", "processor ms of a rank: ") for name in VARIANTS)),
          *(starts(count, rounds) for count in counts))
    together(most)
    shared_calls()
    metrics()

"""What the tables of scripts/bench share: the build, the GPU or the simulated one, runs with and without libspill."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SPILL_BUILD", TOP / "build")).resolve()
MIB = 1 << 20
# Under real pressure managed memory must be out of reach: asking for more of it than there is can hang a GPU.
MOVING, NEWCOMERS = "trim, demote, split, host", "trim, split, host"
LEFT = 6144  # MiB that another process leaves where nothing else is said; facts.md's 6,145
OUT_OF_MEMORY = 3  # exit status of the programs here


def gpu_name():
    """Name and driver of the first GPU, or None."""
    if not shutil.which("nvidia-smi"):
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()[0] if answer.returncode == 0 and answer.stdout.strip() else None


def runtime_path():
    """Folder of libcudart.so.13, for the programs that link it; '' if the loader knows it."""
    for home in filter(None, (os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/usr/local/cuda-13.0")):
        for folder in ("lib64", "targets/x86_64-linux/lib"):
            if (pathlib.Path(home) / folder / "libcudart.so.13").exists():
                return str(pathlib.Path(home) / folder)
    return os.environ.get("LD_LIBRARY_PATH", "")


def host_memory():
    """What host.limit and host.reserve are measured against."""
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return f"host memory: {kib['MemAvailable'] / MIB:.0f} GiB available of {kib['MemTotal'] / MIB:.0f}"


def hog(leave_mib):
    sys.path.insert(0, str(TOP / "tests/gpu"))
    from hog import Hog  # pylint: disable=import-outside-toplevel
    return Hog(BUILD, leave_mib, runtime_path())


class Run:
    """One finished run: status, what it printed, its log's records (none without libspill)."""

    def __init__(self, done, log):
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        self.records = []
        if log.exists():
            self.records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def values(self):
        """`NAME VALUE` lines."""
        return {name: float(value) for name, value in (line.split() for line in self.stdout.splitlines())}

    def good(self, what):
        if self.status:
            sys.exit(f"bench: {what} ended with {self.status}:\n{self.stdout[-2000:]}{self.stderr[-2000:]}")
        return self

    def moves(self, what):
        """(bytes, microseconds) of all moves of that kind. What left together has the same time in each of its lines."""
        lines = [record for record in self.records if record["kind"] == "move" and record["what"] == what]
        total = until = 0
        for line in sorted(lines, key=lambda line: line["t"]):
            total += min(line.get("us", 0), line["t"] * 1e6 - until)
            until = line["t"] * 1e6
        return sum(line["bytes"] for line in lines), total


def environment(folder, log, chain, **variables):
    """Of a run at home in that folder. libspill is preloaded, and writes the log, where a chain is named."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILL_") and name != "LD_PRELOAD"}
    clean |= {"SPILL_BUILD": str(BUILD), "HOME": str(folder)}
    if chain is not None:
        clean |= {"LD_PRELOAD": str(BUILD / "libspill.so"), "SPILL_LOG": str(log), "SPILL_OOM_CHAIN": chain,
                  "SPILL_HOST_SHARE": "no"}  # what runs beside it does not decide
    return clean | {name: str(value) for name, value in variables.items()}


def keep(done, log, chain):
    """Log and output of a finished run, where BENCH_KEEP names a folder for them."""
    if "BENCH_KEEP" not in os.environ:
        return
    folder = pathlib.Path(os.environ["BENCH_KEEP"])
    words = [pathlib.Path(word).stem for word in done.args[1:4]]
    name = "-".join([f"{len(list(folder.glob('*.txt'))):02}", *words, (chain or "none").replace(", ", "-")])
    text = f"{done.args}\nstatus {done.returncode}\n{done.stdout}\n{done.stderr}"
    (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    if log.exists():
        shutil.copy(log, folder / f"{name}.jsonl")


class Bench:
    """Runs programs on the GPU, or on a simulated one of `vram`; libspill is preloaded where a chain is named."""

    def __init__(self, simulated=False):
        self.gpu = None if simulated else gpu_name()
        self.kernels = BUILD / "tests/bench" / ("bench_kernels.fatbin" if self.gpu else "bench_kernels.so")
        if not self.kernels.exists():
            sys.exit(f"bench: there is no {self.kernels}; build it where the CUDA Toolkit is")

    def program(self, name, *arguments):
        return [str(BUILD / "tests/bench" / name), str(self.kernels), *(str(argument) for argument in arguments)]

    def run(self, command, *, chain=None, vram="2GiB", timeout=300, **variables):
        if not self.gpu:
            command = [str(TOP / "scripts/sim"), "--vram", vram, "--", *command]
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log.jsonl"
            variables = environment(folder, log, chain, **variables)
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=timeout, check=False)
            except subprocess.TimeoutExpired as late:
                text = [(part or b"").decode(errors="replace") for part in (late.stdout, late.stderr)]
                done = subprocess.CompletedProcess(command, 124, *text)
            keep(done, log, chain)
            return Run(done, log)


def used(command):
    """Seconds of processor time of one command. 1 is what a log with out of memory ends with."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"bench: {command} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def spread(times, places):
    return f"{statistics.median(times):.{places}f} ({min(times):.{places}f} to {max(times):.{places}f})"


def table(*rows):
    """Markdown; the first row is the head."""
    print("| " + " | ".join(rows[0]) + " |")
    print("|---" * len(rows[0]) + "|")
    for row in rows[1:]:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)

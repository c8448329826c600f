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


class Started:
    """A command that runs, and waits behind its imports for `finish` if it asks (tests/gpu/job_times.py, wait_for_turn)."""

    def __init__(self, command, chain, **variables):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.command, self.chain, self.log = command, chain, pathlib.Path(self.folder.name) / "log.jsonl"
        pipe = pathlib.Path(self.folder.name) / "turn"
        os.mkfifo(pipe)
        self.turn = os.open(pipe, os.O_RDWR)  # no reader has to be there
        variables = environment(pathlib.Path(self.folder.name), self.log, chain, JOB_TURN=pipe, **variables)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)

    def finish(self, timeout):
        os.write(self.turn, b"go\n")
        try:
            status, text = None, self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status, text = 124, self.process.communicate()
        done = subprocess.CompletedProcess(self.command, self.process.returncode if status is None else status, *text)
        keep(done, self.log, self.chain)
        run = Run(done, self.log)
        self.drop()
        return run

    def drop(self):
        """Ends it, finished or not."""
        self.process.kill()
        self.process.communicate()
        os.close(self.turn)
        self.folder.cleanup()


class Bench:
    """Runs programs on the GPU, or on a simulated one of `vram`; libspill is preloaded where a chain is named."""

    def __init__(self, simulated=False):
        self.gpu = None if simulated else gpu_name()
        self.kernels = BUILD / "tests/bench" / ("bench_kernels.fatbin" if self.gpu else "bench_kernels.so")
        if not self.kernels.exists():
            sys.exit(f"bench: there is no {self.kernels}; build it where the CUDA Toolkit is")

    def program(self, name, *arguments):
        return [str(BUILD / "tests/bench" / name), str(self.kernels), *(str(argument) for argument in arguments)]

    def start(self, command, *, chain=None, vram="2GiB", **variables):
        if not self.gpu:
            command = [str(TOP / "scripts/sim"), "--vram", vram, "--", *command]
        return Started(command, chain, **variables)

    def run(self, command, *, timeout=300, **options):
        return self.start(command, **options).finish(timeout)

    def in_turn(self, asked, timeout):
        """
        `asked`: command and options of `start`, for each run. Yields the runs, one after another. While one runs the next one
        starts, and waits behind its imports.
        """
        following = None
        try:
            for number, (command, options) in enumerate(asked):
                now = following or self.start(command, **options)
                following = None
                if number + 1 < len(asked):
                    command, options = asked[number + 1]
                    following = self.start(command, **options)
                yield now.finish(timeout)
        finally:
            if following:
                following.drop()


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

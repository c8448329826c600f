"""Runs a program with faults in libspill's calls, and judges the run. BUILD in the environment is the folder of a build."""
import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from programs import FAULTS, Program
from harness import LIBRARY, PATIENCE, SPILL
import log_schema

OLD_LOG = pathlib.Path(__file__).resolve().parents[1] / "cli/data/kept/0.1.0.jsonl"
MODULE = FAULTS / "faults.so"
PATIENCE_S = 120 * PATIENCE  # a run that takes longer waits for something that never comes

# Of both vendors. OUT_OF_MEMORY is what a program may always get for a request.
VENDOR_ERRORS = {2: "out of memory", 801: "not supported", 1: "invalid value", 999: "unknown"}
NAMES = {"cuda": {2: ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"), 801: ("CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported"),
                  1: ("CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue"), 999: ("CUDA_ERROR_UNKNOWN", "cudaErrorUnknown")},
         "hip": {2: ("hipErrorOutOfMemory",), 801: ("hipErrorNotSupported",), 1: ("hipErrorInvalidValue",), 999: ("hipErrorUnknown",)}}
# After a fault in one of these, the thing itself may stay: the vendor, or the kernel, has kept it.
GIVES_BACK = re.compile(r"Free|Release|Unmap|Destroy|^munmap$|^madvise$|Reset|Trim")
NOT_THERE = "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "hipErrorNotInitialized"
# While the driver maps nothing any more, a chunk in the middle of a move has no home, and work that uses it is refused.
UNMAPPED = "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress"
MAPS = {"cuMemMap", "cuMemSetAccess", "vendor"}
EMPTY = re.compile(r".*\.jsonl|metrics\.tmp")  # files that were made and could not be used: further names of a log, a draft
# Functions whose result is no failure of their own.
NEVER_FAIL = {"hipGetLastError": "returns the last error", "hipPeekAtLastError": "returns the last error"}
# Calls that a capture may forbid, and that are not made relaxed: hipMalloc sets the program's last error, so no call may follow.
IN_STRICT_THREADS = ("hipMalloc@",)
# Functions of libspill whose blocks of malloc live as long as the process.
KEEP = {"intern_name": "names of objects in which calls were made", "add_file": "the same, for the log", "cache_real": "real functions",
        "store_layout": "sizes of parameters", "add_pool": "the vendor's pools", "make_pool": "pools in stream order", "make_list": "their streams",
        "spill_host_chunk_put": "kept host chunks, which the driver counts"}
WORDS = {-1: "short", -2: "nothing"}


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in libspill.so that calls a function."""

    side: str  # libc or vendor
    name: str
    offset: str
    count: int


@dataclasses.dataclass(frozen=True)
class Fault:
    """The Nth call from there fails."""

    side: str
    name: str  # of the function, or the side itself: any function
    offset: str  # "": from anywhere
    number: int
    error: int
    on: bool = False  # and each later one

    def __str__(self):
        return f"{self.name}{'@' + self.offset if self.offset else ''}:{self.number}{'+' if self.on else ''}:{WORDS.get(self.error, self.error)}"


def parse(text, report):
    """A fault as str() has it."""
    name, number, error = text.split(":")
    name, _, offset = name.partition("@")
    sides = {place.name: place.side for place in report.places} | {"libc": "libc", "vendor": "vendor"}
    code = {word: code for code, word in WORDS.items()}.get(error)
    return Fault(sides.get(name, "vendor"), name, offset, int(number.rstrip("+")), int(error) if code is None else code, "+" in number)


def errors_of(place, report):
    return report.errors[place.name] if place.side == "libc" else list(VENDOR_ERRORS)


class Report:
    """What faults.so wrote at the end of a run."""

    def __init__(self, text):
        self.places, self.errors, self.strict, self.met, self.left, self.blocks = [], {}, [], [], {}, collections.Counter()
        for line in text.splitlines():
            word, *rest = line.split()
            if word == "place":
                self.places.append(Place(*rest[:3], int(rest[3])))
            elif word == "errors":
                self.errors[rest[0]] = [int(error) for error in rest[1:]]
            elif word == "strict":
                self.strict.append(f"{rest[0]}@{rest[1]}")
            elif word == "met":
                self.met.append(tuple(rest))
            elif word == "left":
                self.left[rest[0]] = int(rest[1])
            elif word == "block":
                self.blocks[rest[0]] += 1


def write_stubs(path):
    """Where libspill.so calls a vendor's function for the program: its stubs of that name."""
    exported = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    rows = {line.split()[-1] for line in exported.splitlines() if re.search(r" T (?:cu|hip|nvml)", line)}
    local = subprocess.run(["nm", "-S", "-n", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    lines = []
    for line in local.splitlines():
        words = line.split()
        if len(words) != 4 or words[2] not in "tT":
            continue
        name = words[3].split(".")[0]
        name = name if name in rows else re.sub("_(dlsym|proc)$", "", name)
        if name in rows:
            begin = int(words[0], 16)
            lines.append(f"{begin:x} {begin + int(words[1], 16):x} {name}\n")
    pathlib.Path(path).write_text("".join(lines), encoding="utf-8")


def write_old_logs(home):
    """Two finished runs in the default folder, for log.keep."""
    state = home / ".local/state/spill"
    state.mkdir(parents=True)
    for number in 1, 2:
        shutil.copy(OLD_LOG, state / f"old-{number}.jsonl")
        (state / f"old-{number}.jsonl").chmod(0o600)


def environment_of(program, folder):
    """For a run of it in the folder, with the library and the simulated GPU. Its home is made there."""
    home, policy = folder / "home", folder / "policy"
    home.mkdir()
    variables = {name: value.replace("{home}", str(home)) for name, value in program.variables.items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LD_LIBRARY_PATH": os.environ["SIM_PATH"], "LD_PRELOAD": str(LIBRARY),
                   "SPILL_LOG": str(home / "log.jsonl"), "SPILL_HOST_SHARE": "no", **variables}
    if program.old_logs:
        write_old_logs(home)
        del environment["SPILL_LOG"]  # the default folder
    if program.policy:
        policy.write_text(program.policy, encoding="utf-8")
        environment["SPILL_POLICY"] = str(policy)
    return environment


class Run:
    """One run of a program in a folder of its own."""

    def __init__(self, program: Program, faults, stubs):
        self.program, self.faults = program, list(faults)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spill-faults-"))
        try:
            self._run(folder, stubs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder, stubs):
        home, report = folder / "home", folder / "report"
        environment = environment_of(self.program, folder) | {
            "LD_PRELOAD": f"{LIBRARY}:{MODULE}", "FAULTS_REPORT": str(report), "FAULTS_STUBS": str(stubs), "FAULTS": ",".join(map(str, self.faults))}
        try:
            done = subprocess.run([str(word) for word in self.program.command], env=environment, cwd=home, capture_output=True,
                                  text=True, errors="replace", timeout=PATIENCE_S, check=False)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            self.status, self.stdout, self.stderr = None, str(late.stdout), str(late.stderr)
        self.report = Report(report.read_text(encoding="utf-8")) if report.exists() else None
        written = sorted(path for path in home.rglob("*.jsonl") if not path.name.startswith("old-"))
        log = written[0] if written else home / "log.jsonl"
        self.log = log.read_bytes() if written else None
        self.files = sorted(path.name for path in home.rglob("*") if path != log and not re.fullmatch(self.program.files, path.name))
        self.reader = ""
        if self.log:
            read = subprocess.run([SPILL, "log", log], capture_output=True, text=True, errors="replace", check=False)
            self.reader = read.stderr if read.returncode or read.stderr else ""


def usual(program, stubs, times=3):
    """A run without a fault. What is left behind is the most that several such runs leave: threads differ in their speed."""
    first, *others = [Run(program, [], stubs) for _ in range(times)]
    for other in others:
        first.report.left = {name: max(count, other.report.left[name]) for name, count in first.report.left.items()}
        first.report.blocks |= other.report.blocks
    complaints = judge(first, first)
    if complaints or first.status:
        raise AssertionError(f"{program.name} without a fault: {first.status} {complaints}\n{first.stdout}{first.stderr}")
    return first


def where(fault):
    """For people: the functions and lines of a fault's place."""
    if not fault.offset:
        return str(fault)
    found = subprocess.run(["addr2line", "-fipe", LIBRARY, hex(int(fault.offset, 16) - 1)], capture_output=True, text=True, check=True)
    return f"{fault.name}: {found.stdout.strip()}"


def _log_complaints(run, silent):
    if run.log is None or not run.log:
        return [] if silent else ["there is no log"]
    if run.reader:
        return [f"spill log: {run.reader.strip()}"]
    if not run.log.endswith(b"\n"):
        return ["the last line of the log is not whole"]
    try:
        records = [json.loads(line) for line in run.log.decode().splitlines()]
        log_schema.check(records)
    except (ValueError, KeyError, AssertionError) as wrong:
        return [f"the log is not as its schema: {wrong}"]
    return []


def _ledger_left(run):
    """What the exit line says is live, by kind of memory; {} without such a line."""
    last = [line for line in (run.log or b"").splitlines() if b'"kind":"exit"' in line]
    return json.loads(last[-1])["live"] if last else {}


def _by_function(blocks):
    """Of places in libspill.so: how many by the name of the function."""
    count = collections.Counter()
    for offset, number in blocks.items():
        found = subprocess.run(["addr2line", "-fe", LIBRARY, hex(int(offset, 16) - 1)], capture_output=True, text=True, check=True)
        count[found.stdout.split()[0]] += number
    return count


def _left_complaints(run, usual):
    """What is left is at most what is left of a run without faults. Only after one fault: with several, what one has left, another keeps."""
    if run.report is None:
        return ["no report"] if run.status in (0, 1, 2) else []
    if run.status or not run.program.frees or len(run.faults) > 1 or any(fault.on for fault in run.faults):  # a program that gives up gives nothing back
        return []
    more = {name: count for name, count in run.report.left.items() if count > usual.report.left[name]}
    if run.program.resets and not any(GIVES_BACK.search(met[0]) for met in run.report.met):
        blocks = _by_function(run.report.blocks - usual.report.blocks)
        more |= {f"malloc in {function}": count for function, count in blocks.items() if function not in KEEP}
    else:  # libspill may keep things for later, or the vendor has kept them
        more = {name: count for name, count in more.items() if name == "descriptors"}
    ledger = {name: count for name, count in _ledger_left(run).items() if count > _ledger_left(usual)[name]}
    return [f"left: {more}"] * bool(more) + [f"the ledger has {ledger}"] * bool(ledger)


def _allowed_errors(run):
    """That the program may get: out of memory, what the vendor answered to libspill, and where libspill finds no function for good, that."""
    names = NAMES[run.program.vendor]
    allowed = {name for fault in run.faults if fault.side == "vendor" for name in names.get(fault.error, ())}
    if any(fault.on and fault.name in MAPS for fault in run.faults):
        allowed |= set(UNMAPPED)
    return allowed | set(names[2]) | (set(NOT_THERE) if _lasting(run, "libc") else set())


def _lasting(run, *sides):
    """Calls fail for good. Then libspill may not be able to leave the thread as it was, or to have a log."""
    return any(fault.on and fault.side in sides for fault in run.faults)


def _leaves_strict(run):
    """Its thread cannot be relaxed, because that call has failed or was not found."""
    return any(name.endswith("ThreadExchangeStreamCaptureMode") or name in ("dlsym", "dlvsym") for name, *_ in run.report.met)


def _status_complaints(run):
    if not run.program.may_end_with(run.status, run.stdout):
        return [f"exit status {run.status}"]
    told = run.program.errors(run.stdout) or "out of memory" in run.stdout + run.stderr or "failed" in run.stdout
    return [f"exit status {run.status} without an error"] if run.status > 0 and not told else []


def judge(run, usual):
    """What is wrong with the run; an empty list: nothing. `usual`: a run of the same program without a fault."""
    program, complaints = run.program, []
    if run.status is None:
        return ["it does not end"]
    if program.saw_wrong_data(run.stdout):
        complaints.append("data is wrong")
    if "CHANGED" in run.stdout and not _lasting(run, "vendor"):
        complaints.append("the thread's state has changed")
    seen = program.errors(run.stdout) - _allowed_errors(run)
    if seen:
        complaints.append(f"the program got {', '.join(sorted(seen))}")
    strict = [place for place in run.report.strict if not place.startswith(IN_STRICT_THREADS)] if run.report else []
    if strict and not _leaves_strict(run):
        complaints.append(f"would break a capture: {', '.join(strict)}")
    files = [name for name in run.files if not (_lasting(run, "libc") and EMPTY.fullmatch(name))]
    if files:
        complaints.append(f"files: {files}")
    silent = any(fault.side == "libc" for fault in run.faults) or _lasting(run, "vendor")
    return complaints + _status_complaints(run) + _log_complaints(run, silent) + _left_complaints(run, usual)

"""Runs a random program twice and compares: with memory enough and without libspill, and with too little under it.

A program is a file of lines (random.h). Its first line may say how it runs: `# VARIANT`, a name of VARIANTS.
BUILD in the environment is the folder of a build.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD"])
LIBRARY, SPILL, SIM, RANDOM = BUILD / "libspill.so", BUILD / "spill", BUILD / "tests/sim", BUILD / "tests/random"
sys.path.append(str(HERE.parent))
import log_schema  # noqa: E402

PATIENCE_S = 120 * int(os.environ.get("PATIENCE", "1"))  # a program that takes longer waits for something that never comes; a long one has more
LINES_A_SECOND = 100  # at least, on a busy machine
ENOUGH, LITTLE = "1GiB", "10MiB"

# The only differences that are allowed between the two runs: of these operations, these errors in place of success, and, where one is
# named, with this figure. All else is the same, above all each plain, pitched, managed, pinned, registered, stream-ordered and created
# block: the host has room for it.
OUT_OF_MEMORY = {2, 700002}
ALLOWED = {
    "array": (OUT_OF_MEMORY, None, "an array is never on the host (limits.md, What never spills)"),
    "graph_memory": (OUT_OF_MEMORY, None, "memory nodes of graphs are never on the host"),
    # A program may see that memory has left the device only where it hands it to another process.
    "export": (None, 1, "spilled and movable memory cannot be exported (limits.md, Other processes)"),
    "share": (None, 1, "the same. Memory that was exported is the same in both processes"),
}
# On HIP libspill waits for a device by hipDeviceSynchronize, which breaks a capture that another thread is just beginning (limits.md,
# AMD; adr/0014). What the thread does later with its graphs is not compared then. No other difference hides behind it: its data is
# still checked.
BROKEN_CAPTURE = {"random_hip_5": 901, "random_hip_7": 901}


@dataclasses.dataclass
class Variant:
    """How a program runs: by which interface, and with which options of libspill."""

    program: str
    variables: dict

    @property
    def libraries(self):
        hip = {"random_hip_7": SIM / "hip/7"}.get(self.program, SIM / "hip")
        return f"{SIM}:{SIM / 'cudart'}:{hip}"


MOVES = {"SPILL_MOVABLE_ENABLE": "on", "SPILL_MOVABLE_CHUNK": "2MiB"}
STAYS = {"SPILL_MOVABLE_ENABLE": "off"}
VARIANTS = {
    "driver moves": Variant("random_driver", MOVES),
    "driver usual": Variant("random_driver", {}),
    "driver follows": Variant("random_driver", MOVES | {"SPILL_MOVABLE_FOLLOW": "on"}),
    "driver stays": Variant("random_driver", STAYS),
    "driver host": Variant("random_driver", STAYS | {"SPILL_OOM_CHAIN": "host"}),
    "driver managed": Variant("random_driver", STAYS | {"SPILL_OOM_CHAIN": "managed, host"}),
    "driver limit": Variant("random_driver", MOVES | {"SPILL_DEVICE_LIMIT": "7MiB", "SPILL_SIM_VRAM": "64MiB"}),
    "driver reserve": Variant("random_driver", MOVES | {"SPILL_DEVICE_RESERVE": "1MiB"}),
    "driver jitter": Variant("random_driver", MOVES | {"SPILL_SIM_JITTER": "1"}),
    # Less often full: exportable memory is on the device at first, and other memory still moves.
    "driver roomy": Variant("random_driver", MOVES | {"SPILL_SIM_VRAM": "20MiB"}),
    "runtime roomy": Variant("random_runtime", MOVES | {"SPILL_SIM_VRAM": "20MiB"}),
    "driver observes": Variant("random_driver", {"SPILL_MODE": "observe", "SPILL_SIM_VRAM": ENOUGH}),
    "runtime moves": Variant("random_runtime", MOVES),
    "runtime usual": Variant("random_runtime", {}),
    "runtime stays": Variant("random_runtime", STAYS),
    "runtime follows": Variant("random_runtime", MOVES | {"SPILL_MOVABLE_FOLLOW": "on"}),
    "hip 5": Variant("random_hip_5", {}),
    "hip 7": Variant("random_hip_7", {}),
    "hip 7 host": Variant("random_hip_7", {"SPILL_OOM_CHAIN": "host"}),
}

# Of kept programs: the simulator refuses a call of libspill, which in random programs only a rare race makes it do.
KEPT_VARIANTS = {
    "hip 7 refuses access": Variant("random_hip_7", {"SPILL_SIM_FAIL": "hipMemSetAccess:4+:1"}),
}

def variant_of(path):
    with open(path, encoding="utf-8") as file:
        first = file.readline()
    return (VARIANTS | KEPT_VARIANTS)[first[1:].strip()]


class Run:
    """One run: its lines by number, and what is said at its end."""

    def __init__(self, path, variant, spilled):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spill-random-"))
        try:
            self._run(folder, path, variant, spilled)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, folder, path, variant, spilled):
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LD_LIBRARY_PATH": variant.libraries, "SPILL_SIM_DEVICES": "2",
                       "SPILL_SIM_VRAM": ENOUGH}
        log = folder / "log.jsonl"
        if spilled:
            environment |= {"LD_PRELOAD": str(LIBRARY), "SPILL_LOG": str(log), "SPILL_HOST_SHARE": "no", "SPILL_HOST_LIMIT": "2GiB",
                            "SPILL_HOST_RESERVE": "0", "SPILL_DEVICE_RESERVE": "0", "SPILL_SIM_VRAM": LITTLE} | variant.variables
        command = [str(word) for word in (RANDOM / variant.program, "run", pathlib.Path(path).resolve(), SIM / "kernels.so",
                                          RANDOM / "random_plugin.so")]
        if variant.program.startswith("random_hip"):
            command[-1] = ""  # a plug-in with the CUDA runtime has no place there
        with open(folder / "out", "w+", encoding="utf-8", errors="replace") as out:
            flags = os.open(folder / "out", os.O_WRONLY | os.O_APPEND)
            try:
                self.status = subprocess.run(command, env=environment, cwd=folder, stdout=flags, stderr=subprocess.PIPE, check=False,
                                             timeout=PATIENCE_S + os.path.getsize(path) / 20 / LINES_A_SECOND).returncode
            except subprocess.TimeoutExpired:
                self.status = "does not end"
            finally:
                os.close(flags)
            self.lines, self.end, self.calls = {}, [], 0
            for line in out:
                number, _, rest = line.rstrip("\n").partition(" ")
                if number.isdigit():
                    self.lines[int(number)] = rest
                elif number == "calls":
                    self.calls = int(rest)
                else:
                    self.end.append(line.strip())
        self.log = [complaint for each in (log, *folder.glob("child-*.jsonl")) for complaint in log_complaints(each)] \
            if spilled and self.status == 0 else []
        self.exit = last_record(log) if spilled and not self.log else {}


def last_record(log):
    if not log.exists():
        return {}
    return json.loads(log.read_text(encoding="utf-8").splitlines()[-1])


def log_complaints(log):
    """A log is readable, and at its end nothing is alive."""
    if not log.exists():
        return ["there is no log"]
    read = subprocess.run([SPILL, "log", log], capture_output=True, text=True, errors="replace", check=False)
    if read.returncode or read.stderr:
        return [f"spill log: {read.stderr.strip()}"]
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
        log_schema.check([json.loads(line) for line in lines], lines)
        last = json.loads(lines[-1])
    except (ValueError, KeyError, AssertionError) as wrong:
        return [f"the log is not as its schema: {wrong}"]
    if last["kind"] != "exit":
        return ["the log does not end with its totals"]
    return [f"alive at the end: {last['live']}"] if any(last["live"].values()) else []


def threads_of(path):
    """The thread of each line, by the numbers of a run's output."""
    with open(path, encoding="utf-8") as file:
        return [line.split()[0] for line in file if line.strip() and not line.startswith("#")]


def may_differ(before, after):
    operation, _, _ = before.partition(" ")
    word = re.match(r"\w+ done (-?\d+) (\d+)", after)
    if operation not in ALLOWED or not word:
        return False
    errors, figure, _ = ALLOWED[operation]
    return (errors is None or int(word[1]) in errors) and figure in (None, int(word[2])) and "changed" not in after


@dataclasses.dataclass
class Verdict:
    """What is wrong. `kind` is equal for a program and its shorter one."""

    kind: str
    text: str


def judge(plain, spilled, threads, broken_capture=None):
    """The first thing that is wrong, or None. `threads`: of the lines. `broken_capture`: the error of BROKEN_CAPTURE."""
    gone = set()
    for run, name in ((plain, "with memory enough"), (spilled, "with libspill")):
        if run.status != 0:
            last = max(run.lines, default=None)
            return Verdict(f"{name}: status {run.status}", f"{name}: exit status {run.status}, last line {last}")
        for number, line in sorted(run.lines.items()):
            if " WRONG" in line or " changed " in line:
                word = "WRONG" if " WRONG" in line else "changed"
                return Verdict(f"{name}: {line.split()[0]} {word}", f"{name}: line {number}: {line}")
    for number in sorted(plain.lines.keys() | spilled.lines.keys()):
        before, after = plain.lines.get(number, "left out"), spilled.lines.get(number, "left out")
        if broken_capture and re.fullmatch(rf"\w+ done {broken_capture} \d+", after):
            gone.add(threads[number])
        if before != after and threads[number] not in gone and not may_differ(before, after):
            name = (before if before != "left out" else after).split()[0]
            return Verdict(f"result of {name}", f"line {number}: '{before}' with memory enough, '{after}' with libspill")
    if plain.end != spilled.end:
        return Verdict("at the end", f"at the end: {plain.end} with memory enough, {spilled.end} with libspill")
    if any(not re.fullmatch(r"free \d 0", line) for line in plain.end):
        return Verdict("the program itself", f"with memory enough: {plain.end}")
    if spilled.log:
        return Verdict("log", "; ".join(spilled.log))
    return None


def try_program(path, variant):
    """The verdict, and both runs."""
    plain, spilled = Run(path, variant, False), Run(path, variant, True)
    return judge(plain, spilled, threads_of(path), BROKEN_CAPTURE.get(variant.program)), plain, spilled


def draw(name, seed, lines, threads, path):
    """Writes a program of the variant of that name."""
    variant = VARIANTS[name]
    command = [RANDOM / variant.program, "draw", str(seed), str(lines), str(threads)]
    text = subprocess.run(command, env={"LD_LIBRARY_PATH": variant.libraries}, capture_output=True, text=True, check=True).stdout
    path.write_text(f"# {name}\n{text}", encoding="utf-8")


def main(paths):
    bad = 0
    for path in paths:
        verdict, plain, spilled = try_program(path, variant_of(path))
        bad += verdict is not None
        print(f"{path}: {verdict.text if verdict else 'equal'}; {plain.calls} and {spilled.calls} calls, {len(plain.lines)} results;",
              {name: spilled.exit.get(name) for name in ("allocs", "spills", "demotions", "promotions", "ooms")})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""libspill.so under valgrind's memcheck: memcheck.py [NAME…]

The programs are those of tests/faults. Each ends as without valgrind, memcheck finds no error in the process nor in its children,
and the process loses no block. memcheck.supp has the exceptions. The build folder comes in BUILD. Needs no GPU.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "faults")]
import faults  # noqa: E402
import programs  # noqa: E402

VALGRIND = ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", f"--suppressions={HERE / 'memcheck.supp'}",
            # The kernels' accesses are resumed after a fault: their registers have to be right there.
            "--vex-iropt-register-updates=allregs-at-mem-access"]
# valgrind records each page that is mapped, and takes ten times as long for the addresses of a usual simulated device.
FEW = {"SPILL_SIM_ADDRESSES": "256MiB"}
PATIENCE_S = 600
LOST = re.compile(r"blocks? (?:is|are) definitely lost")


def blocks_of(path):
    """What valgrind wrote of one process, error by error."""
    text = re.sub(r"(?m)^==\d+== ?", "", path.read_text(encoding="utf-8", errors="replace"))
    return [block for block in text.split("\n\n") if block.strip()]


def complaints(program):
    """What was wrong in a run of it."""
    with tempfile.TemporaryDirectory(prefix="spill-memcheck-") as name:
        folder = pathlib.Path(name)
        environment = faults.environment_of(program, folder) | FEW
        command = [*VALGRIND, f"--log-file={folder / '%p.valgrind'}", *map(str, program.command)]
        with subprocess.Popen(command, env=environment, cwd=folder / "home", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace") as running:
            try:
                output, _ = running.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                running.kill()
                return [f"it has not ended after {PATIENCE_S} s"]
        wrong = [] if running.returncode == 0 and not program.saw_wrong_data(output) else [f"status {running.returncode}\n{output}"]
        if not any((folder / "home").rglob("*.jsonl")):
            wrong.append("libspill wrote no log")
        for path in folder.glob("*.valgrind"):
            # A child begins with empty tables and leaves its parent's alone: it cannot use that GPU (docs/design.md).
            own = path.name == f"{running.pid}.valgrind"
            wrong += [block for block in blocks_of(path) if own or not LOST.search(block)]
        return wrong


def main():
    chosen = [program for program in programs.all_programs() if len(sys.argv) == 1 or program.name in sys.argv[1:]]
    if not chosen:
        sys.exit(f"no program is named {' '.join(sys.argv[1:])}")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as jobs:
        for program, wrong in zip(chosen, jobs.map(complaints, chosen)):
            print(f"{program.name}: {'WRONG' if wrong else 'no error'}", *wrong, sep="\n", flush=True)
            bad += bool(wrong)
    print(f"{len(chosen)} programs under memcheck, {bad} wrong")
    sys.exit(bad != 0)


main()

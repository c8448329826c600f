"""NVIDIA's debuggers, checkers, profilers and MPS beside libspill, while memory moves. Run by scripts/gpu-test.

CUPTI is in test_gate.py. A tool that cannot serve the program alone (not installed, refused by the machine) is skipped, with what
it said.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

from real import RealGpu, tell
from test_moves import MOVING, within

from harness import MIB, program

BINARIES = [pathlib.Path(home) / "bin" for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
JOB = program("prog_runtime", "--count", "3", "--mib", "600")
MOVES = {"SPILL_OOM_CHAIN": MOVING, "SPILL_MOVABLE_ENABLE": "on", "SPILL_DEVICE_LIMIT": "1GiB"}


def tool(name):
    """Its path, or None."""
    return shutil.which(name) or next((str(folder / name) for folder in BINARIES if (folder / name).exists()), None)


class Tools(RealGpu):
    def beside(self, name, *arguments, needed):
        """What the tool and the job print with libspill; the same command without it must have served."""
        path = tool(name)
        if not path:
            self.skipTest(f"{name} is not installed")
        command = within(120, [path, *arguments, *JOB])
        alone = self.run_program(command, preload=False)
        if alone.returncode or "all data right" not in alone.stdout or needed not in alone.stdout + alone.stderr:
            self.skipTest(f"{name} does not serve the program alone: {(alone.stdout + alone.stderr)[-300:]}")
        done = self.run_program(command, **MOVES)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, text[-2000:])
        self.assertIn("all data right", done.stdout, text[-2000:])
        self.assertIn(needed, text, text[-2000:])
        return done

    def check_log(self, moves=True):
        """Memory spilled and moved, all was given back, and the log is whole. The tool itself makes no GPU call, and so no log."""
        records = self.checked_records()
        moved, on_host = records[-1]["demoted_bytes"] // MIB, records[-1]["peak"]["host_bytes"] // MIB
        tell(f"{moved} MiB moved out, {on_host} MiB on the host at most")
        self.assertGreater(on_host, 0)
        self.assertEqual(moved > 0, moves)
        self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_compute_sanitizer(self):
        self.beside("compute-sanitizer", "--tool", "memcheck", "--report-api-errors", "no", needed="ERROR SUMMARY: 0 errors")
        self.check_log()

    def test_cuda_gdb(self):
        """It stops at the first kernel, lists it, and lets the program go on to its end."""
        orders = ("set cuda break_on_launch application", "run", "info cuda kernels", "set cuda break_on_launch none", "continue")
        words = [word for order in orders for word in ("-ex", order)]
        self.beside("cuda-gdb", "-q", "-nx", "-batch", *words, "--args", needed="exited normally")
        self.check_log()

    def test_nsight_compute(self):
        """It runs each kernel several times, and puts the memory back in between. It loads OptiX, so nothing moves."""
        self.beside("ncu", "--clock-control", "none", "--launch-count", "3", "--target-processes", "all", needed="Duration")
        self.check_log(moves=False)

    def test_nsight_systems(self):
        self.beside("nsys", "profile", "--trace", "cuda", "--sample", "none", "--cpuctxsw", "none", "--stats", "true",
                    "-o", str(self.folder / "trace"), needed="cuLaunchKernel")
        self.check_log()

    def test_mps(self):
        """Two programs at once, served by one server of NVIDIA's Multi-Process Service."""
        if not tool("nvidia-cuda-mps-control"):
            self.skipTest("nvidia-cuda-mps-control is not installed")
        with tempfile.TemporaryDirectory(prefix="mps") as folder:
            places = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
            started = subprocess.run([tool("nvidia-cuda-mps-control"), "-d"], env={**os.environ, **places}, capture_output=True,
                                     text=True, timeout=30, check=False)
            if started.returncode:
                self.skipTest(f"nvidia-cuda-mps-control does not start: {started.stderr[-300:]}")
            try:
                self.two_at_once(pathlib.Path(folder), places)
            finally:
                subprocess.run([tool("nvidia-cuda-mps-control")], input="quit -t 1\n", env={**os.environ, **places}, timeout=30,
                               capture_output=True, text=True, check=False)

    def two_at_once(self, folder, places):
        alone = self.run_program(within(60, JOB), preload=False, **places)
        if alone.returncode:
            self.skipTest(f"MPS does not serve the program alone: {(alone.stdout + alone.stderr)[-300:]}")
        logs = [self.folder / f"of-{number}.jsonl" for number in range(2)]
        environment = {**os.environ, **self.preloaded(), **MOVES, **places}
        both = [subprocess.Popen(JOB, env={**environment, "SPILL_LOG": str(log)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True) for log in logs]
        for process, log in zip(both, logs):
            self.addCleanup(process.kill)
            text = process.communicate(timeout=60)[0]
            self.assertEqual(process.returncode, 0, text[-2000:])
            self.log = log
            self.check_log()
        said = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.log"))
        self.assertIn("NEW CLIENT", said, "no program was a client of MPS")

"""NVIDIA's CUDA samples, programs that nobody here wrote: each alone, with libspill and enough memory, and with a small device.limit.

CUDA_SAMPLES: a folder of built samples (github.com/NVIDIA/cuda-samples), each program in a folder of its name; without it they are
skipped. Most check their own results, and say so. Run by scripts/gpu-test.
"""
import concurrent.futures
import os
import pathlib
import re
import unittest

from real import RealGpu, tell
from test_moves import MOVING

LIMIT = "16MiB"
SECONDS = 60
AT_ONCE = 6
VERDICT = re.compile(r"pass|fail|error|wrong|mismatch|success|correct|waive|within|equal|ok\b", re.IGNORECASE)
NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d+(\.\d*)?(e[-+]?\d+)?", re.IGNORECASE)

# What cannot go on with LIMIT, and why.
SHORT = {
    "cdpAdvancedQuicksort": "has no fence between its data and the counter that tells that they are there (docs/limits.md, Speed)",
    "convolutionTexture": "an array of 18 MiB cannot be on the host",
    "cudaCompressibleMemory": "compressible memory cannot be on the host",
    "streamOrderedAllocationIPC": "memory on the host cannot be exported",
    "simpleAttributes": "reads the same memory again and again for ten seconds: in place it takes minutes",
}


def verdicts(text):
    """The lines in which a program says how it went, without numbers. Threads print in any order."""
    lines = [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines() if not line.startswith("spill: ")]
    return sorted(line for line in lines if VERDICT.search(line))


@unittest.skipUnless("CUDA_SAMPLES" in os.environ, "no CUDA_SAMPLES")
class Samples(RealGpu):
    def programs(self):
        found = sorted(path for path in pathlib.Path(os.environ.get("CUDA_SAMPLES", "/nowhere")).rglob("*")
                       if path.name == path.parent.name and path.is_file() and os.access(path, os.X_OK))
        self.assertTrue(found, "CUDA_SAMPLES has no programs")
        return found

    def run_sample(self, path, name, **variables):
        """(exit status, verdicts). A program reads its data from its own folder. Some are several processes, each with its log."""
        command = ["timeout", "-k", "5", str(SECONDS), "env", "-C", str(path.parent), str(path)]
        done = self.run_program(command, preload=name != "alone", SPILL_LOG=self.folder / f"{path.name}.{name}.%p.jsonl", **variables)
        return done.returncode, verdicts(done.stdout + done.stderr)

    def run_both(self, path, name, **variables):
        return path.name, self.run_sample(path, "alone"), self.run_sample(path, name, **variables)

    def last_records(self, paths, name, **variables):
        """Each program does what it does alone. The last records of the logs, by program."""
        last = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            for program, alone, done in threads.map(lambda path: self.run_both(path, name, **variables), paths):
                with self.subTest(program):
                    self.assertEqual(done, alone)
                    last[program] = [self.checked_records(log)[-1] for log in self.folder.glob(f"{program}.{name}.*.jsonl")]
        return last

    def test_with_enough_memory(self):
        last = self.last_records(self.programs(), "fits")
        for program, ends in last.items():
            self.assertEqual([(end["spills"], end["ooms"]) for end in ends], [(0, 0)] * len(ends), program)
        tell(f"{len(last)} programs")

    def test_beyond_a_limit(self):
        paths = [path for path in self.programs() if path.name not in SHORT]
        last = self.last_records(paths, "short", SPILL_DEVICE_LIMIT=LIMIT, SPILL_OOM_CHAIN=MOVING)
        away = sum(any(end.get("away", {}).get("peak_bytes") for end in ends) for ends in last.values())
        tell(f"{len(last)} programs, {away} with memory on the host")
        self.assertGreater(away, len(paths) // 4)

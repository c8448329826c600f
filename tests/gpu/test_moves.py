"""Memory that moves, on a real GPU: within a small limit, and under real pressure. Run by scripts/gpu-test.

Managed memory cannot be reached: every chain here is given, without it. What is fast is measured by scripts/bench, not here.
"""
import os
import sys

from hog import Hog
from real import GPU, HERE, MIB, RealGpu, tell
from test_frameworks import needs
from test_gpu import CUDA

import harness
from harness import program

MOVING = "trim, demote, split, host"
BENCH = GPU.parent / "bench"
KERNELS = str(BENCH / "bench_kernels.fatbin")
LEFT = 6144  # MiB under pressure


def within(seconds, command):
    return ["timeout", "-k", "5", str(seconds), *(str(word) for word in command)]


class Moving(RealGpu):
    def moved(self, records, what):
        lines = [record for record in records if record["kind"] == "move" and record["what"] == what]
        size = sum(line["bytes"] for line in lines) // MIB
        tell(f"{what}: {size} MiB, {len(lines)} moves")
        return size

    def good(self, done):
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done


class Moves(Moving):
    def test_the_cold_gives_way_and_comes_back(self):
        command = within(60, [BENCH / "moves", KERNELS, "through", 512])
        self.good(self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_MOVABLE_ENABLE="on", SPILL_DEVICE_LIMIT="512MiB"))
        records = self.checked_records()
        self.assertEqual(self.moved(records, "demote"), 512)
        self.assertGreaterEqual(self.moved(records, "promote"), 384)
        large = [record for record in records if record["kind"] == "alloc" and record["bytes"] == 512 * MIB]
        self.assertEqual([(record["place"], record.get("host_bytes", 0)) for record in large], [("movable", 0)] * 2)
        self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_programs_see_plain_device_memory(self):
        for name in CUDA:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                command = within(40, program(name, "--count", "3", "--mib", "600"))
                alone = self.run_program(command, preload=False)
                done = self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_MOVABLE_ENABLE="on", SPILL_DEVICE_LIMIT="1GiB")
                self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout))
                self.assertGreater(self.moved(self.checked_records(), "demote"), 0)

    def test_no_byte_is_lost_in_a_storm(self):
        """tests/storm/moving.c: kernels and copies in flight on 8 streams of 4 threads while chunks leave and come back.

        No kernels that are held: here they stop that program also without libspill (tests/storm/moving.h).
        """
        command = within(90, [GPU.parent / "storm/moving", harness.KERNELS, 1, 15, 512, 200])
        done = self.good(self.run_program(command, SPILL_OOM_CHAIN=MOVING, SPILL_MOVABLE_ENABLE="on", MOVING_NO_HOLDS="1",
                                          SPILL_DEVICE_LIMIT="512MiB", SPILL_MOVABLE_CHUNK="8MiB", SPILL_HOST_AHEAD="16MiB"))
        tell(done.stdout.strip())
        self.assertIn("all bytes right", done.stdout)
        records = self.checked_records()
        self.assertGreater(self.moved(records, "demote"), 0)
        self.assertGreater(self.moved(records, "promote"), 0)
        self.assertEqual(set(records[-1]["live"].values()), {0})


class PressureMoves(Moving):
    """Another process holds the rest by plain allocations."""

    def hog(self):
        return Hog(GPU.parent.parent, LEFT, os.environ["SIM_PATH"])

    def test_the_newcomers_are_on_the_device(self):
        command = within(90, [BENCH / "decode", KERNELS, "--steps", 5])
        with self.hog() as hog:
            tell(hog.said)
            alone = self.run_program(command, preload=False)
            done = self.run_program(command, SPILL_OOM_CHAIN=MOVING)
        self.assertEqual(alone.returncode, 3, alone.stdout + alone.stderr)
        self.good(done)
        records = self.checked_records()
        self.assertGreater(self.moved(records, "demote"), 2048)
        newcomers = [record for record in records if record["kind"] == "alloc" and
                     (record["bytes"] == 2048 * MIB or record["api"] == "cuMemCreate")]
        self.assertEqual(len(newcomers), 7)
        self.assertEqual({record.get("host_bytes", 0) for record in newcomers}, {0})
        tell(", ".join(done.stdout.split("\n")[-8:]))

    def job(self, script, *arguments):
        """Its output with enough memory, and under pressure with libspill; alone it is out of memory there."""
        command = within(100, [sys.executable, HERE / script, *arguments])
        enough = self.good(self.run_program(command, preload=False))
        with self.hog() as hog:
            tell(hog.said)
            alone = self.run_program(command, preload=False)
            done = self.run_program(command, SPILL_OOM_CHAIN=MOVING)
        tell(f"enough memory: {' '.join(enough.stderr.split()[-8:])}; too little: {' '.join(done.stderr.split()[-8:])}")
        self.assertIn("OutOfMemoryError", alone.stderr)
        self.good(done)
        self.assertGreater(self.moved(self.checked_records(), "demote"), 0)
        self.assertEqual(done.stdout, enough.stdout)

    @needs("torch")
    def test_training_gives_the_same_losses(self):
        self.job("train_job.py", 8, 3)

    @needs("torch")
    def test_inference_gives_the_same_tokens(self):
        self.job("decode_job.py", 12, 512, 32)

"""Work that waits for the host, queued while libspill waits for the context: nobody waits for ever."""
import unittest

from harness import KERNELS, PROGRAMS, Case


class HostFunctions(Case):
    vram = "64MiB"

    def test_they_end_while_the_device_is_full(self):
        for enable in ("off", "auto"):
            with self.subTest(enable):
                done = self.run_program([str(PROGRAMS / "host_function"), KERNELS, "6"], SPILL_MOVABLE_ENABLE=enable,
                                        SPILL_DEVICE_RESERVE="0", SPILL_MOVABLE_CHUNK="2MiB",
                                        SPILL_OOM_CHAIN="trim, demote, split, host", SPILL_LOG_LEVEL="all")
                self.assertEqual((done.returncode, done.stdout), (0, "good\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()

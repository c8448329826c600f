"""Green contexts: what is placed while one is current is the primary context's, works as ever, and moves."""
import unittest

from harness import KERNELS, PROGRAMS, Case

MOVING = "trim, demote, split, host"


class Green(Case):
    vram = "96MiB"

    def green(self, *arguments, **variables):
        done = self.run_program([str(PROGRAMS / "green"), KERNELS, *arguments], timeout=60, **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_memory_outlives_its_green_context(self):
        self.green("12", "8", preload=False, vram="256MiB")
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                self.green("12", "8", SPILL_DEVICE_LIMIT="40MiB", SPILL_OOM_CHAIN=f"trim, {chain}", SPILL_MOVABLE_ENABLE="off")
                last = self.checked_records()[-1]
                self.assertGreater(last["spills"], 8)
                self.assertEqual(set(last["live"].values()), {0})

    def test_memory_moves_beside_green_contexts(self):
        self.green("12", "8", SPILL_OOM_CHAIN=MOVING, SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_FOLLOW="on",
                   SPILL_DEVICE_LIMIT="64MiB")
        records = self.checked_records()
        self.assertEqual(set(records[-1]["live"].values()), {0})
        self.assertEqual([record for record in records if record["kind"] == "note" and record["code"] == "movable"], [])
        self.assertGreater(sum(record["kind"] == "move" for record in records), 2)


if __name__ == "__main__":
    unittest.main()

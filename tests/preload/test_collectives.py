"""Two ranks, each a process on its own device, whose kernels wait for each other while both move memory: both finish, no lost word.

No time is measured. A rank that waits for ever, or starves, ends in the test's time-out.
"""
import subprocess
import unittest

from harness import KERNELS, MIB, PROGRAMS, decided
from scripted import ScriptCase

RANKS = (0, 1)
TIMEOUT = 120


class Collectives(ScriptCase):
    movable = "on"

    def log_of(self, rank):
        return self.folder / f"{rank}.jsonl"

    def start(self, rank, how, **variables):
        variables = {"SPILL_SIM_VRAM": "64MiB", "SPILL_SIM_DEVICES": 2, "SPILL_DEVICE_RESERVE": 0, "SPILL_MOVABLE_CHUNK": "2MiB",
                     "SPILL_LOG": self.log_of(rank), **variables}
        return subprocess.Popen([str(PROGRAMS / "collective"), KERNELS, str(self.folder / "shared"), str(rank), how], text=True,
                                env=self.environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def both(self, how, **variables):
        """What each rank printed. If one fails, the other one's kernels never end."""
        for left in (self.folder / "shared", *map(self.log_of, RANKS)):
            left.unlink(missing_ok=True)
        ranks = [self.start(rank, how, **variables) for rank in RANKS]
        try:
            outputs = []
            for rank in ranks:
                output, errors = rank.communicate(timeout=TIMEOUT)
                self.assertEqual((rank.returncode, "wrong" in output), (0, False), output + errors)
                outputs.append(output)
            return outputs
        finally:
            for rank in ranks:
                rank.kill()
                rank.communicate()

    def test_the_ranks_launch_in_opposite_order(self):
        """No kernel ends before the other rank's allocation has returned. So neither may wait for its device for ever."""
        for wait in ("50ms", "0ms"):
            with self.subTest(wait):
                for rank, output in zip(RANKS, self.both("crossed", SPILL_MOVABLE_WAIT=wait)):
                    where = {line.split()[1]: line.split()[2] for line in output.splitlines() if line.startswith("where")}
                    self.assertEqual(where["busy"], "d" * 18)
                    self.assertIn("h", where["idle"])
                    records = self.checked_records(self.log_of(rank))
                    asked = [record for record in decided(records) if record["bytes"] == 40 * MIB]
                    self.assertEqual(asked[0]["place"], "split")
                    self.assertIn("demote", [attempt["place"] for attempt in asked[0]["tried"]])

    def test_both_move_between_rounds(self):
        """Each rank launches from two threads, which its own moves hold up. It ends when both ranks have moved six times."""
        for follow in ("off", "on"):
            with self.subTest(follow=follow):
                outputs = self.both("rounds", SPILL_MOVABLE_FOLLOW=follow)
                rounds = [[int(line.split()[1]) for line in output.splitlines() if line.startswith("rounds")] for output in outputs]
                self.assertEqual(rounds[0], rounds[1])
                for rank in RANKS:
                    records = self.checked_records(self.log_of(rank))
                    demoted = [record for record in records if record["kind"] == "move" and record["what"] == "demote"]
                    self.assertGreaterEqual(len(demoted), 6)


del ScriptCase
if __name__ == "__main__":
    unittest.main()

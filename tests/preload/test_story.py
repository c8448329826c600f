"""The story of a run: the log tells the room at each decision, the bytes that were off the device, and the cost of moves."""
import unittest

from harness import MIB, decided
from scripted import FULL, MOVED, ScriptCase

VRAM = 14 * MIB


class Seen(ScriptCase):
    movable = "off"

    def check_seen(self, record, reserved=0):
        seen = record["seen"]
        self.assertEqual(seen["total"], VRAM)
        self.assertEqual(seen["total"] - seen["free"] - seen["ours"], reserved)
        self.assertLess(seen["ago_us"], 60e6)

    def test_a_spill_has_the_room_on_the_device(self):
        """Three of 4 MiB fit. Others hold nothing, or the memory that the simulated device keeps from everybody."""
        self.good(self.script(FULL))
        fits, spills = decided(self.checked_records())[:3], decided(self.checked_records())[3:]
        for record in spills:
            self.check_seen(record)
            self.assertEqual(record["seen"]["free"], 2 * MIB)
        self.assertEqual([record for record in fits if "seen" in record], [])

    def test_others_memory_is_what_is_neither_free_nor_ours(self):
        self.good(self.script("retain:0 alloc:a:4m:3 free:a", SPILL_SIM_CONTEXT="4MiB"))
        spill = decided(self.checked_records())[-1]
        self.assertEqual(spill["reason"], "oom")
        self.check_seen(spill, reserved=4 * MIB)
        self.assertEqual(spill["seen"]["ours"], 8 * MIB)

    def test_without_pressure_no_line_has_it(self):
        self.good(self.script("retain:0 alloc:a:4m:3 free:a"))
        self.assertEqual([record for record in self.checked_records() if "seen" in record], [])


class Moves(ScriptCase):
    movable = "on"

    def test_a_move_has_the_room_and_the_exit_line_the_cost(self):
        self.good(self.script(FULL, **MOVED))
        records = self.checked_records()
        moves = [record for record in records if record["kind"] == "move"]
        self.assertGreater(len(moves), 1)
        for move in moves:
            self.assertEqual(move["seen"]["total"], VRAM)
        away = records[-1]["away"]
        self.assertEqual((away["peak_bytes"], away["wanted_bytes"]), (6 * MIB, 20 * MIB))
        self.assertGreater(away["moves_us"], 0)


if __name__ == "__main__":
    unittest.main()

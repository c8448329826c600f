"""The story of a run: the log tells the room at each decision, the bytes that were off the device, and the cost of moves."""
import json
import subprocess
import unittest

from harness import MIB, SPILL, decided
from scripted import FULL, MOVED, ScriptCase

VRAM = 14 * MIB


def told(story):
    """The sentences of a story as they follow each other on stderr."""
    return "; ".join(filter(None, (story[name] for name in ("size", "cost", "in_place"))))


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
        records = decided(self.checked_records())
        for record in records[3:]:
            self.check_seen(record)
            self.assertEqual(record["seen"]["free"], 2 * MIB)
        self.assertEqual([record for record in records[:3] if "seen" in record], [])

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
        self.good(self.script(FULL, **MOVED | {"SPILL_DEVICE_RESERVE": "2MiB"}))  # never without a free byte
        records = self.checked_records()
        moves = [record for record in records if record["kind"] == "move"]
        self.assertGreater(len(moves), 1)
        for move in moves:
            self.assertEqual(move["seen"]["total"], VRAM)
        away = records[-1]["away"]
        self.assertEqual((away["peak_bytes"], away["wanted_bytes"]), (8 * MIB, 20 * MIB))
        self.assertGreater(away["moves_us"], 0)


class Lines(ScriptCase):
    """What people are told at once: the first spill, each fourfold growth, and the story at the end; never more than five lines."""
    movable = "off"

    def lines(self, words, **variables):
        self.log.unlink(missing_ok=True)
        done = self.good(self.script("retain:0 " + words, **variables))
        return done.stderr.splitlines()

    def test_growth_is_told_and_the_end(self):
        first, second, third, end = self.lines("alloc:a:4m:3 alloc:b:1m:2 alloc:c:1m:2 alloc:d:4m:3 alloc:e:4m:8", SPILL_DEVICE_RESERVE="0",
                                               SPILL_OOM_CHAIN="host")
        run = self.reported()
        self.assertRegex(first, "^spill: script: 1.00 MiB of 1.00 MiB placed in host memory .*; expect lower speed; log ")
        self.assertRegex(second, r"^spill: script: now 6.00 MiB is off the card \(1.00 MiB when last told\); expect lower speed; log ")
        self.assertRegex(third, r"^spill: script: now 26.00 MiB is off the card \(6.00 MiB when last told\)")
        self.assertEqual(end, f"spill: script: {told(run['story'])}; log {self.log}")
        self.assertTrue(run["story"]["size"].startswith("up to 46.00 MiB was in host memory; "), end)

    def test_never_more_than_five(self):
        steps = " ".join(f"alloc:{name}:{size}" for name, size in zip("bcdefgh", ("64k", "256k", "1m", "4m", "16m", "64m", "256m")))
        lines = self.lines("alloc:a:14m:1 " + steps, SPILL_OOM_CHAIN="host", SPILL_DEVICE_RESERVE="0")
        self.assertEqual(len(lines), 5, lines)
        self.assertEqual(sum("when last told" in line for line in lines), 3)

    def test_quiet_and_all(self):
        words = "alloc:a:4m:3 alloc:b:1m:2 alloc:c:4m:5"
        self.assertEqual(self.lines(words, SPILL_LOG_STDERR="off"), [])
        self.assertEqual([line for line in self.lines(words, SPILL_LOG_STDERR="all") if "when last told" in line], [])

    def test_without_a_spill_there_is_no_line(self):
        self.assertEqual(self.lines("alloc:a:4m:3 free:a"), [])

    def test_moves(self):
        *lines, end = self.lines("alloc:a:4m:5", **MOVED | {"SPILL_MOVABLE_ENABLE": "on"})
        story = self.reported()["story"]
        self.assertGreater(story["moves_us"], 0)
        self.assertEqual(end, f"spill: script: {told(story)}; log {self.log}")
        self.assertLessEqual(len(lines), 4)

    def test_without_a_log(self):
        *_, end = self.lines("alloc:a:4m:5", SPILL_LOG="off")
        self.assertRegex(end, r"^spill: script: up to 8.00 MiB was in host memory; at most 20.00 MiB was wanted at once, and at most 12.00 MiB was on the card; the time that "
                         r"kernels lost by reading it there is not known \(movable.follow = off\)$")


class Same(ScriptCase):
    """stderr, text, JSON and the page tell one story."""

    def told(self, *words):
        """What `spill` says of the log."""
        return subprocess.run([SPILL, *words, self.log], capture_output=True, text=True, timeout=60, check=False).stdout

    def test_all_outputs_agree(self):
        done = self.script("retain:0 alloc:a:4m:5 alloc:b:100m", **MOVED, SPILL_HOST_LIMIT="12MiB")
        run, text = self.reported(), self.told("report")
        page = self.told("report", "--html", "-")
        story, oom = run["story"], run["ooms"][-1]
        end = done.stderr.splitlines()[-1]
        self.assertEqual(end, f"spill: script: {told(story)}; log {self.log}")
        self.assertIn(f"  spilled        yes: {story['size']}\n  cost           {story['cost']}\n  read in place  {story['in_place']}\n", text)
        self.assertIn(json.dumps(story["size"]), page)
        self.assertIn(json.dumps(story["cost"]), page)
        self.assertIn(json.dumps(story["in_place"]), page)
        log = self.told("log")
        self.assertIn(f"; {told(story)}; still held ", log.splitlines()[-1])
        summary = self.told("report", "--summary")
        self.assertEqual(summary.splitlines()[2].split()[4:6], story["size"].split()[2:4], summary)
        # The cause of an out of memory, with its remedy, is at the top and the same everywhere.
        self.assertIn(f"spill:   refused by {oom['refused']}\n", done.stderr)
        self.assertIn(f"spill:   what would have helped: {oom['advice']}\n", done.stderr)
        top = text.split("  spilled  ")[0]
        self.assertIn(f"  refused by     {oom['refused']}; 100.00 MiB asked by ", top)
        self.assertIn(f"  would help     {oom['advice']}\n", top)
        self.assertIn(json.dumps(oom["refused"]), page)

    def test_a_refused_policy_is_the_advice(self):
        policy = self.folder / "bad.conf"
        policy.write_text("[spill]\nmdoe = spill\n", encoding="utf-8")
        policy.chmod(0o600)
        done = self.script("retain:0 alloc:a:4m:5", SPILL_POLICY=policy)
        run = self.reported()
        self.assertEqual(run["problem"], f"{policy}:2:1: unknown key 'mdoe' in [spill]; the nearest is 'mode'")
        self.assertEqual(run["ooms"][0]["advice"], f"a policy without this error: {run['problem']}; it would have been tried as split")
        self.assertIn(f"spill:   what would have helped: {run['ooms'][0]['advice']}\n", done.stderr)
        self.assertNotIn("spill.mode = spill", done.stderr + run["advice"])


if __name__ == "__main__":
    unittest.main()

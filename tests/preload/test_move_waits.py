"""Nothing moves under work in flight, and nobody waits for ever: where it does not end, the next step of the chain serves.

No time is measured: that the word returns while what it might wait for goes on is the proof.
"""
import unittest

from harness import PROGRAMS
from movable_case import MovableCase
from scripted import ScriptCase

FULL = "early:s:64k early:a:40m fill:a"  # of 64 MiB; s is no movable memory
AFTER = "fill:b verify:b verify:a where:a"
# Now that all is quiet, something moves again.
AGAIN = "free:b alloc:c:40m fill:c verify:c verify:a where:a"


class Waits(MovableCase):
    def served_otherwise(self, before, after, verified="", **variables):
        """An allocation between the words `before` and `after` is served, and nothing moved for it."""
        done = self.good(f"{FULL} {before} alloc:b:40m where:a {after} {AFTER} {verified} {AGAIN}", **variables)
        asked = [record for record in self.allocs() if record["bytes"] == 40 << 20]
        self.assertEqual(asked[1]["place"], "split", asked[1])
        self.assertIn("demote", [attempt["place"] for attempt in asked[1]["tried"]])
        during, later, end = self.where(done, "a")
        self.assertEqual(during, "d" * 20)
        self.assertIn("h", end, "it could have moved")
        demoted = [move for move in self.moves("demote") if move["seq"] == asked[0]["seq"]]
        self.assertGreater(len(demoted), 0)
        return done

    def test_a_kernel_that_does_not_end(self):
        self.served_otherwise("hold:s", "go join", "verify:s")

    def test_a_kernel_on_that_very_memory(self):
        self.served_otherwise("hold:a", "go join")

    def test_a_stream_that_waits_for_a_value(self):
        self.served_otherwise("await", "wake join")

    def test_a_callback_that_wants_a_mutex_of_the_allocating_thread(self):
        self.served_otherwise("lock callback", "unlock join")

    def test_a_launch_that_is_stuck_in_a_full_queue(self):
        self.served_otherwise("hold:s flood:4", "go join", SPILL_SIM_QUEUE="6")

    def test_pageable_copies_in_flight(self):
        self.served_otherwise("hold:s pageable:a", "go join")

    def test_a_longer_wait_is_as_good(self):
        self.served_otherwise("hold:s", "go join", SPILL_MOVABLE_WAIT="500ms")
        self.served_otherwise("hold:s", "go join", SPILL_MOVABLE_WAIT="0ms")

    def test_a_context_of_a_peer(self):
        """Its work on that memory is waited for, and it can use the memory after a move as before."""
        done = self.good(f"{FULL} peer:a alloc:b:40m where:a go unpeer {AFTER} {AGAIN} peer:a go unpeer verify:a",
                         SPILL_SIM_DEVICES="2")
        self.assertEqual(self.where(done, "a")[0], "d" * 20)
        self.assertIn("h", self.where(done, "a")[2])

    def test_a_copy_of_another_device(self):
        """It needs no peer access, and uses the memory in a context that has no other part in it."""
        self.served_otherwise("across:a", "go unpeer", SPILL_SIM_DEVICES="2")

    def test_a_call_that_needs_room(self):
        """It fails as without the library: nothing can give way."""
        done = self.program(f"{FULL} brim:x hold:s stream go join verify:a stream", SPILL_SIM_ROOM="stream:2MiB")
        self.assertEqual([result for word, result in self.results(done) if word == "stream"],
                         ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"])


class Captures(ScriptCase):
    def words(self, words):
        done = self.run_in([str(PROGRAMS / "capturing"), *words.split()],
                           self.environment(SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB", SPILL_DEVICE_RESERVE="0"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [tuple(line.split()) for line in done.stdout.splitlines()]

    def test_nothing_moves_while_a_thread_captures(self):
        """The allocation is served by the next step, also that of the thread itself; after the capture it moves again."""
        for begin, end in (("thread:begin:a:1", "thread:end:a"), ("thread:begin:a:2", "thread:end:a"),
                           ("mode:2 thread:begin:a:0", "thread:end:a"), ("mode:2 begin:a:0", "end:a")):
            with self.subTest(begin):
                self.log.unlink(missing_ok=True)
                status = "thread:status:a" if end.startswith("thread") else "status:a"
                results = self.words(f"alloc:4 alloc:4 alloc:4 {begin} alloc:4 {status} {end} alloc:4 look")
                self.assertEqual(results[-5:], [("status", "1"), ("status:a", "CUDA_SUCCESS"), ("end:a", "CUDA_SUCCESS"),
                                                ("alloc:4", "CUDA_SUCCESS"), ("look", "CUDA_SUCCESS")])
                kinds = [record for record in self.checked_records() if record["kind"] in ("alloc", "move") and
                         record.get("reason") != "asked"]
                places = [record.get("place", record["kind"]) for record in kinds]
                self.assertEqual(places[:4], ["movable", "movable", "movable", "split"])
                self.assertIn("move", places[4:])


del MovableCase, ScriptCase
if __name__ == "__main__":
    unittest.main()

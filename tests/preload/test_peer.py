"""Peer access that the program enabled holds for spilled memory, whenever it was placed."""
import unittest

from harness import freed, held
from scripted import MOVED, ScriptCase

CHAINS = ("split", "managed", "host")
SIZES = ("4m", "64k:100")  # its own range; blocks of shared chunks


class Peers(ScriptCase):
    movable = "off"

    def two(self, words, **variables):
        """On two devices of 14 MiB; context a is on the first, b on the second. The first is full."""
        self.log.unlink(missing_ok=True)
        return self.script("create:a:0 create:b:1 use:a alloc:f:4m:3 " + words, SPILL_SIM_DEVICES=2, **variables)

    def spilled(self):
        return sum(held(record)["host"] + held(record)["managed"] for record in self.checked_records()
                   if record["kind"] == "alloc")

    def test_enabled_before(self):
        for chain in CHAINS:
            for size in SIZES:
                with self.subTest(chain, size=size):
                    self.good(self.two(f"use:b peer:a use:a alloc:x:{size} fill:x use:b verify:x use:a free:x",
                                       SPILL_OOM_CHAIN=chain))
                    self.assertGreater(self.spilled(), 0)

    def test_enabled_after(self):
        for chain in CHAINS:
            for size in SIZES:
                with self.subTest(chain, size=size):
                    self.good(self.two(f"alloc:x:{size} fill:x use:b peer:a verify:x fill:x verify:x use:a verify:x free:x",
                                       SPILL_OOM_CHAIN=chain))
                    self.assertGreater(self.spilled(), 0)

    def test_the_simulator_would_notice(self):
        """Without the call the kernel may not read it, spilled or not."""
        for words in ("use:a", "alloc:x:4m"):
            done = self.two(f"{words} {'fill:f' if words == 'use:a' else 'fill:x'} use:b "
                            f"{'verify:f' if words == 'use:a' else 'verify:x'}", SPILL_OOM_CHAIN="split")
            self.assertIn("ERROR", done.stdout)

    def test_a_free_waits_for_the_peer_s_kernel(self):
        """The context that frees is the owner's; the kernel that writes runs on the peer."""
        for chain in CHAINS:
            with self.subTest(chain):
                done = self.good(self.two("use:b peer:a use:a alloc:x:4m own:x:b freeheld:x", SPILL_OOM_CHAIN=chain))
                self.assertIn("the kernel was done when the free returned", done.stdout)

    def test_ended_contexts_are_forgotten(self):
        done = self.good(self.two("use:b peer:a destroy:b use:a alloc:x:4m fill:x verify:x free:x", SPILL_OOM_CHAIN="split"))
        notes = [record["code"] for record in self.checked_records() if record["kind"] == "note"]
        self.assertNotIn("peer", notes, done.stdout)

    def test_a_new_context_of_the_device_has_no_access(self):
        done = self.two("use:b peer:a destroy:b create:c:1 use:a alloc:x:4m fill:x use:c verify:x", SPILL_OOM_CHAIN="split")
        self.assertIn("ERROR", done.stdout.splitlines()[-1])

    def test_results_are_the_vendor_s(self):
        words = "use:b peer:a peer:a unpeer:a unpeer:a peer:b alloc:y:4m fill:y verify:y"
        self.assertEqual(self.two(words).stdout, self.two(words, preload=False).stdout)


class MovedPeers(Peers):
    """The peer reads and writes what has moved, whatever was first: the access, or the move."""

    movable = "on"

    def both(self, words):
        self.good(self.two(words, **MOVED))
        records = self.checked_records()
        self.assertEqual(self.moves(records), [(0, 2), (0, 2), (1, 2)])
        self.assertEqual(len(freed(records)), 5)
        self.assertEqual(records[-1]["live"]["device_bytes"], 0)
        self.assertLess(records[-1]["live"]["host_bytes"], 4096, "the program's own pinned words")

    def test_enabled_before(self):
        self.both("fill:f use:b peer:a verify:f use:a alloc:x:4m:2 fill:x use:b verify:f verify:x fill:f verify:f use:a verify:f "
                  "free:x free:f")

    def test_enabled_after(self):
        self.both("fill:f alloc:x:4m:2 fill:x use:b peer:a verify:f verify:x fill:f verify:f use:a verify:f free:x free:f")

    def test_the_simulator_would_notice(self):
        done = self.two("fill:f alloc:x:4m use:b verify:f", **MOVED)
        self.assertEqual(self.moves(self.checked_records()), [(0, 2)])
        self.assertIn("ERROR", done.stdout.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()

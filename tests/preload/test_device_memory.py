"""Devices whose memory is the host's, or that read it by a coherent link: what is tried, in which order, and what is said. Simulated."""
import unittest

from harness import MIB, SMALL, Case, decided, program
from scripted import FULL, MOVED, ScriptCase


class Kinds(ScriptCase):
    movable = "off"

    def run_full(self, caps, **variables):
        """Places of all requests, and what was tried for the last."""
        self.log.unlink(missing_ok=True)
        self.good(self.script(FULL, SPILL_SIM_CAPS=caps, **variables))
        records = self.checked_records()
        self.memory = [device["memory"] for device in records[0]["devices"]]
        requests = decided(records)
        return [r["place"] for r in requests], [t["place"] for t in requests[-1].get("tried", [])]

    def check(self, caps, memory, place, tried, **variables):
        with self.subTest(caps=caps, **variables):
            places, seen = self.run_full(caps, **variables)
            self.assertEqual(self.memory, [memory])
            self.assertEqual(places, ["device"] * 3 + [place] * 2)
            self.assertEqual(seen, ["device", *tried])

    def test_the_chain_goes_by_the_device(self):
        self.check("", "discrete", "split", ["trim"])
        self.check("integrated", "integrated", "managed", ["trim"])
        self.check("integrated, nomanaged", "integrated", "host", ["trim"])
        self.check("coherent", "coherent", "managed", ["trim"])
        self.check("integrated, coherent, nomanaged", "integrated", "host", ["trim"])
        # Its pages cannot move, whatever page tables it uses.
        self.check("coherent, nomanaged", "discrete", "split", ["trim"])
        self.check("coherent, nounified", "discrete", "split", ["trim"])

    def test_the_user_knows_better(self):
        self.check("integrated", "discrete", "split", ["trim"], SPILL_DEVICE_MEMORY="discrete")
        self.check("", "integrated", "managed", ["trim"], SPILL_DEVICE_MEMORY="integrated")
        self.check("", "coherent", "managed", ["trim"], SPILL_DEVICE_MEMORY="coherent")
        # A chain that is written is as written.
        self.check("integrated", "integrated", "split", [], SPILL_OOM_CHAIN="split")

    def test_full_chips_are_full(self):
        """There is no more memory behind an integrated device than the host has left: the honest error."""
        done = self.script(FULL, SPILL_SIM_CAPS="integrated", SPILL_HOST_RESERVE="64TiB")
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
        oom = next(r for r in self.checked_records() if r["kind"] == "oom")
        self.assertEqual([t["place"] for t in oom["tried"]], ["device", "trim", "managed", "host"])
        self.assertEqual(oom["refused_by"], "host.reserve")


class Movable(ScriptCase):
    movable = "on"

    def places(self, **variables):
        self.log.unlink(missing_ok=True)
        self.done = self.good(self.script(FULL, **(MOVED | variables)))
        return [r["place"] for r in decided(self.checked_records())]

    def notes(self):
        return [r["text"] for r in self.records() if r["kind"] == "note"]

    def test_nothing_moves_within_the_same_chips(self):
        self.assertEqual(self.places(SPILL_SIM_CAPS="integrated"), ["device"] * 3 + ["managed"] * 2)
        self.assertEqual([n for n in self.notes() if "the device's memory is the host's" in n], self.notes())
        self.assertEqual(len(self.notes()), 1)
        self.assertEqual(self.places(SPILL_SIM_CAPS="integrated", SPILL_MOVABLE_ENABLE="auto", SPILL_MOVABLE_ABOVE="0%")[0], "device")
        self.assertEqual(self.notes(), [], "nobody insisted")

    def test_it_does_where_the_user_says(self):
        for variables in ({"SPILL_DEVICE_MEMORY": "discrete"}, {"SPILL_OOM_CHAIN": "demote"}):
            with self.subTest(**variables):
                self.assertEqual(self.places(SPILL_SIM_CAPS="integrated", **variables), ["movable"] * 5)

    def test_coherent_memory_moves(self):
        self.assertEqual(self.places(SPILL_SIM_CAPS="coherent"), ["movable"] * 5)


class Node(ScriptCase):
    """The simulated machine has memory on node 0 only, and the device says that node 1 is nearest."""

    movable = "off"

    def places(self, **variables):
        self.log.unlink(missing_ok=True)
        self.good(self.script(FULL, SPILL_SIM_NODE=1, SPILL_OOM_CHAIN="split, managed", **variables))
        records = self.checked_records()
        notes = [r["text"] for r in records if r["kind"] == "note" and r["code"] == "host-numa"]
        return {r["place"] for r in decided(records)} - {"device"}, notes

    def test_chunks_are_on_the_node_that_is_named(self):
        self.assertEqual(self.places(), ({"managed"}, []))
        self.assertEqual(self.places(SPILL_HOST_NUMA="0"), ({"split"}, []))

    def test_a_node_that_is_not_there_is_said_once(self):
        self.assertEqual(self.places(SPILL_HOST_NUMA="1000"),
                         ({"managed"}, ["this machine has no memory on node 1000 (host.numa); the node nearest to the device is used"]))

    def test_pinned_memory_is_as_ever(self):
        self.log.unlink(missing_ok=True)
        self.good(self.script(FULL, SPILL_OOM_CHAIN="host", SPILL_HOST_NUMA="0"))
        self.assertEqual([r["place"] for r in decided(self.checked_records())], ["device"] * 3 + ["host"] * 2)


class Hip(Case):
    def place(self, caps):
        self.log.unlink(missing_ok=True)
        done = self.run_program(program("prog_hip"), vram=SMALL, SPILL_SIM_CAPS=caps)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        records = self.checked_records()
        spilled = {r["place"] for r in decided(records) if r["bytes"] == 6 * MIB} - {"device"}
        return records[0]["devices"][0]["memory"], spilled

    def test_kinds(self):
        self.assertEqual(self.place(""), ("discrete", {"host"}))
        self.assertEqual(self.place("integrated"), ("integrated", {"managed"}))
        self.assertEqual(self.place("coherent, xnack"), ("coherent", {"managed"}))
        self.assertEqual(self.place("xnack"), ("discrete", {"managed"}))


if __name__ == "__main__":
    unittest.main(verbosity=2)

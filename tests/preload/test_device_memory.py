"""Devices whose memory is the host's, or that read it by a coherent link: what is tried, in which order, and what is said. Simulated."""
import unittest

from harness import MIB, PROGRAMS, SMALL, Case, decided, held, of_release, program
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


class Reclaimable(ScriptCase):
    """The driver of a GB10 does not call free what the kernel can take back from its caches, and gives it out all the same."""

    movable = "off"

    def places(self, words, **variables):
        self.log.unlink(missing_ok=True)
        self.good(self.script(words, **variables))
        return [r["place"] for r in decided(self.checked_records())]

    def test_all_of_an_integrated_device_is_given_out(self):
        """20 MiB are free by the driver, and there are 3 GiB: no reserve for code sends these requests elsewhere."""
        card = {"SPILL_SIM_VRAM": "3GiB", "SPILL_SIM_RECLAIMABLE": f"{(3 << 10) - 20}MiB"}
        words = "retain:0 alloc:a:4m:4 alloc:b:2m:20"
        self.assertEqual(self.places(words, SPILL_SIM_CAPS="integrated", **card), ["device"] * 24)
        # Where the device has memory of its own, the driver's figure holds.
        self.assertEqual(set(self.places(words, **card)), {"split"})
        self.assertIn("split", self.places(words, SPILL_SIM_CAPS="integrated", SPILL_DEVICE_MEMORY="discrete", **card))

    def test_behind_a_spill_too(self):
        card = {"SPILL_SIM_CAPS": "integrated", "SPILL_SIM_VRAM": "64MiB", "SPILL_SIM_RECLAIMABLE": "60MiB", "SPILL_DEVICE_LIMIT": "16MiB"}
        self.assertEqual(self.places("retain:0 alloc:a:4m:5 free:a alloc:b:4m:4", **card), ["device"] * 4 + ["managed"] + ["device"] * 4)


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
    """ROCm 5 has no chunks on the host. ROCm 7.2 has them."""

    def run_release(self, release, **variables):
        self.log.unlink(missing_ok=True)
        name, path = ("prog_hip", {}) if release == 5 else ("prog_hip_7", {"LD_LIBRARY_PATH": of_release(7)})
        self.done = self.run_program(program(name), vram=SMALL, **path, **variables)
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertIn("all data right", self.done.stdout)
        self.spilled = [r for r in decided(self.checked_records()) if r["bytes"] == 6 * MIB and r["place"] != "device"]

    def place(self, caps, release=5):
        self.run_release(release, SPILL_SIM_CAPS=caps)
        return self.records()[0]["devices"][0]["memory"], {r["place"] for r in self.spilled}

    def test_kinds(self):
        for release, place in ((5, "host"), (7, "split")):
            with self.subTest(release=release):
                self.assertEqual(self.place("", release), ("discrete", {place}))
                self.assertEqual(self.place("coherent, xnack", release), ("coherent", {"managed"}))

    def test_an_apu(self):
        """hipMalloc takes the host's memory (GTT). Without HMM there is no managed memory, whatever the device."""
        for release in 5, 7:
            with self.subTest(release=release):
                self.assertEqual(self.place("integrated", release), ("integrated", {"managed"}))
                self.assertEqual(self.place("integrated, xnack", release), ("integrated", {"managed"}))
                self.assertEqual(self.place("integrated, nounified", release), ("integrated", {"host"}))
                self.assertEqual(self.place("integrated, nomanaged", release), ("integrated", {"host"}))

    def test_xnack(self):
        """Without it managed memory does not migrate, and is no step of the chain. A chain that is written is as written."""
        for release in 5, 7:
            with self.subTest(release=release):
                self.run_release(release, SPILL_SIM_CAPS="novmm")
                self.assertEqual({r["place"] for r in self.spilled}, {"host"})
                self.assertNotIn("managed", [t["place"] for r in self.spilled for t in r["tried"]])
                self.run_release(release, SPILL_SIM_CAPS="novmm, xnack")
                self.assertEqual({r["place"] for r in self.spilled}, {"managed"})
                self.run_release(release, SPILL_OOM_CHAIN="managed, host", SPILL_SIM_CAPS="novmm, nounified")
                self.assertEqual({r["place"] for r in self.spilled}, {"host"})
                self.assertEqual({t["error"] for r in self.spilled for t in r["tried"] if t["place"] == "managed"},
                                 {"hipErrorNotSupported"})

    def test_what_has_no_chunks(self):
        for caps in "novmm", "nohostvmm":
            self.assertEqual(self.place(caps, 7), ("discrete", {"host"}))

    def test_the_other_device_uses_what_is_split(self):
        """Access that was enabled before, or is enabled later; and the free while the other device is current."""
        for when in "before", "later":
            with self.subTest(when):
                self.log.unlink(missing_ok=True)
                done = self.run_program([str(PROGRAMS / "split_hip"), when], vram=SMALL, SPILL_SIM_DEVICES=2, SPILL_DEVICE_RESERVE=0,
                                        LD_LIBRARY_PATH=of_release(7))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("export refused\ndevice 1 0\nset 0\nwait 0\ncopy 0\nwrong bytes 0\nfree 0\ndevice 0 0\nback 1\n",
                              done.stdout)
                allocs = decided(self.checked_records())
                self.assertEqual([(r["place"], r["dev"]) for r in allocs], [("device", 0), ("split", 0), ("device", 0)])
                self.assertTrue(held(allocs[1])["device"] and held(allocs[1])["host"])
                notes = [(r["code"], "oom.chain" in r["text"]) for r in self.records() if r["kind"] == "note"]
                self.assertEqual(notes, [("export", True)])

    def test_each_call_for_chunks_fails(self):
        """Once: the request is placed by another step, or at once again. For ever: nothing is split. Nothing is left behind, and
        no last error of a call that the program has not made."""
        alone = self.run_program(program("prog_hip_7"), preload=False, LD_LIBRARY_PATH=of_release(7))
        for call in ("hipMemAddressReserve", "hipMemCreate", "hipMemMap", "hipMemSetAccess", "hipMemcpyAsync",
                     "hipStreamCreateWithFlags", "hipMemGetAllocationGranularity"):
            for nth, places in (("1", ({"split"}, {"host"}, {"split", "host"})), ("1+", ({"host"},))):
                with self.subTest(call, nth=nth):
                    self.run_release(7, SPILL_SIM_FAIL=f"{call}:{nth}:999")
                    self.assertEqual(self.done.stdout, alone.stdout)
                    self.assertIn({r["place"] for r in self.spilled}, places)
                    self.assertEqual(set(self.records()[-1]["live"].values()), {0})


if __name__ == "__main__":
    unittest.main(verbosity=2)

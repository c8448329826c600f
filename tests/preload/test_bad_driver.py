"""A driver that can do less, that is not there, or whose calls fail: less choice, the honest error, nothing lost."""
import os
import unittest

from harness import MIB, apart, decided, program
from scripted import FULL, MOVED, ScriptCase


class Driver(ScriptCase):
    """Less of a driver is less of a choice, never a crash."""

    movable = "off"

    def places(self):
        return [r["place"] for r in decided(self.checked_records())]

    def test_capabilities(self):
        for caps, place, before in (("novmm", "managed", ["trim"]), ("nohostvmm", "managed", ["trim"]),
                                    ("novmm,nomanaged", "host", ["trim"]), ("nomanaged", "split", ["trim"])):
            with self.subTest(caps):
                self.log.unlink(missing_ok=True)
                done = self.good(self.script(FULL, SPILL_SIM_CAPS=caps))
                self.assertEqual(self.places(), ["device"] * 3 + [place] * 2)
                # What the device cannot do is not in the chain, so nothing of it was tried.
                tried = [[t["place"] for t in r.get("tried", [])] for r in decided(self.records())]
                self.assertEqual(tried, [[]] * 3 + [["device", *before]] * 2)
                self.assertEqual(self.numbers(done, "free")[-1], 14 * MIB)

    def test_a_step_that_the_device_cannot_do_is_tried_and_recorded(self):
        self.good(self.script(FULL, SPILL_SIM_CAPS="novmm", SPILL_OOM_CHAIN="split, host"))
        last = decided(self.checked_records())[-1]
        self.assertEqual(last["place"], "host")
        self.assertEqual([t["place"] for t in last["tried"]], ["device", "split"])

    def test_an_empty_chain_never_spills(self):
        done = self.script(FULL, SPILL_OOM_CHAIN="")
        self.assertEqual(done.stdout, self.script(FULL, preload=False).stdout)
        self.assertEqual(apart(done.stderr)[0], "")

    def test_no_driver(self):
        for name in ("prog_runtime", "prog_runtime_static", "prog_driver_dlsym"):
            with self.subTest(name):
                folders = [f for f in os.environ["SIM_PATH"].split(":") if not f.endswith("/sim")]
                path = ":".join(folders)
                alone = self.run_in(program(name), self.environment(preload=False, LD_LIBRARY_PATH=path))
                with_it = self.run_in(program(name), self.environment(LD_LIBRARY_PATH=path))
                self.assertNotEqual(alone.returncode, 0)
                self.assertEqual((with_it.returncode, with_it.stdout, with_it.stderr),
                                 (alone.returncode, alone.stdout, alone.stderr))
                self.assertFalse(self.log.exists())

    def test_no_device(self):
        for name in ("prog_runtime", "prog_runtime_static", "prog_driver_link", "prog_driver_dlsym", "prog_driver_proc2",
                     "prog_hip"):
            with self.subTest(name):
                alone = self.run_program(program(name), preload=False, SPILL_SIM_DEVICES=0)
                with_it = self.run_program(program(name), SPILL_SIM_DEVICES=0)
                self.assertNotEqual(alone.returncode, 0)
                self.assertEqual((with_it.returncode, with_it.stdout, with_it.stderr),
                                 (alone.returncode, alone.stdout, alone.stderr))


class Failures(ScriptCase):
    """A driver call of ours that fails: the chain goes on or the honest error surfaces; no data wrong, nothing leaks."""

    movable = "off"

    # The second round must find what the first left: all of it.
    WORDS = ("retain:0 alloc:a:4m:5 fill:a verify:a free:a info alloc:b:4m:5 fill:b verify:b free:b info "
             "alloc:c:8k:4 free:c info")

    def after(self, chain, fail):
        self.log.unlink(missing_ok=True)
        # The host limit has room for one round and the program's own pinned page: what a failure left charged would refuse the next.
        done = self.script(self.WORDS, SPILL_SIM_FAIL=fail, SPILL_HOST_LIMIT="8256KiB", **({} if chain is None else {"SPILL_OOM_CHAIN": chain}))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for word, result in self.results(done):
            if not word.startswith("alloc:"):
                self.assertEqual(result, "CUDA_SUCCESS", f"{word}\n{done.stdout}{done.stderr}")
            elif word != "alloc:a:4m:5":
                self.assertEqual(result, "CUDA_SUCCESS", f"{word}: only the first round fails\n{done.stdout}")
        self.assertNotIn("wrong", done.stdout)
        self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 3, done.stdout)
        records = self.checked_records()
        live = records[-1]["live"]
        self.assertEqual(set(live.values()), {0})
        return done, records

    def first_round(self, records):
        spilled = [r for r in records if r["kind"] == "alloc" and r["bytes"] == 4 * MIB and r["place"] != "device"]
        return [r["place"] for r in spilled], spilled

    def test_the_chain_goes_on(self):
        # The first failing call of each is one of the fourth allocation's: the three before are the driver's alone.
        for function, code in (("cuMemCreate", 2), ("cuMemMap", 2), ("cuMemSetAccess", 999), ("cuMemAddressReserve", 2),
                               ("cuMemGetAllocationGranularity", 1), ("cuMemCreate", 999)):
            with self.subTest(function, code=code):
                _, records = self.after(None, f"{function}:1:{code}")
                places, spilled = self.first_round(records)
                self.assertEqual(places, ["managed", "split"] + ["split"] * 2)
                self.assertEqual([t["place"] for t in spilled[0]["tried"]], ["device", "trim", "split"])

    def test_each_call_of_one_split(self):
        # With a limit of 10 MiB the third allocation is split: device and host chunks, every one can fail.
        for function, calls in (("cuMemCreate", 2), ("cuMemMap", 2)):
            for call in range(1, calls + 1):
                with self.subTest(function, call=call):
                    self.log.unlink(missing_ok=True)
                    done = self.good(self.script(self.WORDS, SPILL_SIM_FAIL=f"{function}:{call}:2",
                                                 SPILL_DEVICE_LIMIT="10MiB", SPILL_DEVICE_RESERVE="0"))
                    self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 3)
                    self.assertEqual(set(self.checked_records()[-1]["live"].values()), {0})

    def test_the_end_of_the_chain_surfaces(self):
        for chain, function in (("managed", "cuMemAllocManaged"), ("host", "cuMemHostGetDevicePointer"),
                                ("split", "cuMemCreate"), ("split", "cuMemSetAccess"), ("split", "cuMemAddressReserve")):
            with self.subTest(chain, function=function):
                done, records = self.after(chain, f"{function}:1:2")
                self.assertIn(("alloc:a:4m:5", "CUDA_ERROR_OUT_OF_MEMORY"), self.results(done))
                oom, = [r for r in records if r["kind"] == "oom"]
                self.assertEqual([t["place"] for t in oom["tried"]], ["device", chain])
                self.assertEqual(oom["live"]["device_bytes"], 12 * MIB)

    def test_pinned_memory_refused(self):
        # The script's own pinned words come first when it fills; here nothing is filled before.
        done = self.script("retain:0 alloc:a:4m:5 free:a info alloc:b:4m:5 fill:b verify:b free:b info",
                           SPILL_OOM_CHAIN="host", SPILL_SIM_FAIL="cuMemHostAlloc:1:2")
        self.assertEqual([r for _, r in self.results(done)][2:3], ["CUDA_ERROR_OUT_OF_MEMORY"])
        self.assertEqual({r for _, r in self.results(done)[3:]}, {"CUDA_SUCCESS"}, done.stdout)
        self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 2)
        self.checked_records()

    def test_a_small_request_whose_chunk_fails(self):
        # 14 MiB less 3 x 4 leaves 2; the third MiB needs a chunk.
        done = self.script("retain:0 alloc:a:4m:3 alloc:b:1m:6 free:b alloc:c:1m:6 fill:c verify:c free:c free:a info",
                           SPILL_OOM_CHAIN="split", SPILL_SIM_FAIL="cuMemCreate:1:2")
        results = dict(self.results(done))
        self.assertEqual(results.pop("alloc:b:1m:6"), "CUDA_ERROR_OUT_OF_MEMORY")
        self.assertEqual(set(results.values()), {"CUDA_SUCCESS"}, done.stdout)
        self.assertEqual(self.numbers(done, "free"), [14 * MIB])
        self.checked_records()

    def test_a_wait_that_fails_is_the_frees_answer_and_nothing_is_lost(self):
        # The first free of the driver's is how ours waits.
        done = self.script("retain:0 alloc:a:4m:3 alloc:b:4m fill:b verify:b free:b free:b free:a info",
                           SPILL_SIM_FAIL="cuMemFree:1:999")
        self.assertEqual([r for w, r in self.results(done) if w == "free:b"], ["CUDA_ERROR_UNKNOWN", "CUDA_SUCCESS"])
        self.assertEqual(self.numbers(done, "free"), [14 * MIB])
        self.checked_records()

    def test_a_free_in_stream_order_that_fails_can_be_made_again(self):
        for call in ("cuEventCreate", "cuEventRecord"):
            with self.subTest(call):
                self.log.unlink(missing_ok=True)
                done = self.script("retain:0 alloc:a:4m:3 alloc:b:4m fill:b verify:b async free:b free:b sync free:a sync info",
                                   SPILL_SIM_FAIL=f"{call}:1:999")
                self.assertEqual([r for w, r in self.results(done) if w == "free:b"], ["CUDA_ERROR_UNKNOWN", "CUDA_SUCCESS"], done.stdout)
                self.assertEqual(self.checked_records()[-1]["live"]["host_bytes"], 0)


class Moves(ScriptCase):
    """Any one call of ours that fails while memory is made movable, tried out, and moved: the program sees none of it."""

    movable = "on"

    def test_each_call_that_fails(self):
        for function, code in (("cuMemCreate", 2), ("cuMemMap", 999), ("cuMemSetAccess", 2), ("cuMemAddressReserve", 2),
                               ("cuStreamCreate", 2), ("cuEventCreate", 2), ("cuCtxRecordEvent", 999), ("cuEventQuery", 999)):
            moved = 0
            for call in range(1, 11):
                with self.subTest(function, call=call):
                    self.log.unlink(missing_ok=True)
                    done = self.good(self.script(Failures.WORDS, SPILL_SIM_FAIL=f"{function}:{call}:{code}", **MOVED))
                    self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 3)
                    records = self.checked_records()
                    self.assertEqual(set(records[-1]["live"].values()), {0})
                    moved += len(self.moves(records))
            # Six where nothing is in the way. What fails may be in the trial, before the first move or in its middle.
            self.assertGreater(moved, 10, function)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Calls that take device memory and allocate no buffer: on a full device something movable gives way for them."""
import unittest

from harness import MIB
from movable_case import OOM, RESERVES, SUCCESS, MovableCase

# Each takes 2 MiB, and brim leaves less. The device has room for what the program begins with, and 40 MiB more.
ROOM = {"SPILL_SIM_ROOM": "module:2MiB,function:2MiB,stream:2MiB,event:2MiB,exec:2MiB,threads:4096", "SPILL_SIM_CONTEXT": "2MiB"}
FULL = "early:a:32m fill:a verify:a brim:b"
# Words before the device is full, the word, the function that fails without room.
CALLS = (("", "module", "cuModuleLoad"), ("", "library", "cuLibraryGetModule"), ("", "stream", "cuStreamCreate"), ("", "event", "cuEventCreate"),
         ("", "graph:a", "cuGraphInstantiateWithFlags"), ("", "context", "cuCtxCreate_v2"), ("", "stack:4096", "cuCtxSetLimit"))

# A function whose loading fails once is lost to the program: room must be there before (the simulator's word for it).
FUNCTIONS = (("module", "function", "cuFuncLoad"), ("module", "first:a", "cuLaunchKernel"))


class Room(MovableCase):
    usual = MovableCase.usual | ROOM

    def test_something_gives_way(self):
        for before, word, api in CALLS:
            with self.subTest(word):
                alone = self.program(f"{before} {FULL} {word}", preload=False)
                self.assertEqual(self.result(alone, word), OOM)
                done = self.program(f"{before} {FULL} {word} {'run' if word == 'graph:a' else ''} verify:a")
                self.assertEqual((self.result(done, word), self.result(done, "verify:a"), done.returncode),
                                 (SUCCESS, SUCCESS, 0), done.stdout + done.stderr)
                rooms = [move for move in self.moves() if move["reason"] == "room"]
                self.assertEqual({move["api"] for move in rooms}, {api})
                self.assertEqual([record for record in self.checked_records() if record["kind"] == "oom"], [])

    def test_functions_are_loaded_from_the_reserve(self):
        """What fits has taken it; later calls free it again before it is needed."""
        for before, word, _ in FUNCTIONS:
            alone = self.program(f"{before} {FULL} {word}", preload=False)
            self.assertEqual(self.result(alone, word), OOM)
            for reserve in RESERVES:
                with self.subTest(word, reserve=reserve):
                    self.good(f"{before} {FULL} spare:4m {word} verify:a", **{reserve: "8MiB"})
                    self.assertEqual({move["reason"] for move in self.moves()}, {"reserve"})

    def test_code_finds_room_soon_after_a_vain_try(self):
        """The request that fills the device can move nothing, because the device is busy. A moment later code is loaded."""
        for before, word, _ in FUNCTIONS:
            with self.subTest(word):
                self.good(f"{before} early:a:32m fill:a hold:a brim:b go sync {word} verify:a", SPILL_DEVICE_RESERVE="8MiB",
                          SPILL_MOVABLE_WAIT="5ms")
                self.assertEqual({move["reason"] for move in self.moves()}, {"reserve"})

    def test_with_the_default_policy(self):
        """`auto`, and a reserve of nothing: what filled the device is movable."""
        done = self.good(f"{FULL} stream event verify:a", SPILL_MOVABLE_ENABLE="auto", SPILL_MOVABLE_CHUNK="64MiB")
        self.assertEqual(self.result(done, "stream"), SUCCESS)

    def test_the_vendor_s_error_if_nothing_can(self):
        for before, word, _ in CALLS + FUNCTIONS:
            with self.subTest(word):
                words = f"{before} {FULL} {word} verify:a"
                alone = self.program(words, preload=False)
                done = self.program(words, SPILL_MOVABLE_ENABLE="off")
                self.assertEqual((self.results(done), done.returncode), (self.results(alone), alone.returncode))
                self.assertEqual(self.result(done, word), OOM)
                self.assertEqual(self.moves(), [])

    def test_it_is_asked_a_few_times_only(self):
        done = self.program(f"{FULL} module verify:a", SPILL_SIM_FAIL="cuModuleLoad:2+")
        self.assertEqual((self.result(done, "module"), self.result(done, "verify:a")), (OOM, SUCCESS))
        self.assertGreater(len(self.moves()), 0)
        self.assertLessEqual(len(self.moves()), 8)

    def test_another_error_makes_no_room(self):
        done = self.program(f"{FULL} module verify:a", SPILL_SIM_FAIL="cuModuleLoad:2:999")
        self.assertEqual((self.result(done, "module"), self.moves()), ("CUDA_ERROR_UNKNOWN", []))

    def test_nothing_in_a_capture(self):
        done = self.program(f"{FULL} begin:2 stream module end stream verify:a")
        self.assertEqual([result for word, result in self.results(done) if word in ("stream", "module")], [OOM, OOM, SUCCESS])
        before_the_last = self.moves()
        self.assertEqual(sum(move["bytes"] for move in before_the_last if move["api"] == "cuModuleLoad"), 0)

    def test_what_gave_way_is_no_more_than_it_takes(self):
        self.program(f"{FULL} stream")
        self.assertLessEqual(sum(move["bytes"] for move in self.moves()), 4 * MIB)


del MovableCase
if __name__ == "__main__":
    unittest.main()

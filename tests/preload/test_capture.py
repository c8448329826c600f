"""Stream capture: nothing is placed in one, none is broken by us, and afterwards all is as before."""
import unittest

from harness import PROGRAMS, held
from scripted import MOVED, ScriptCase

FULL = "alloc:4 alloc:4 alloc:4"  # of 14 MiB
CHAINS = ("split", "managed", "host")
OOM = "CUDA_ERROR_OUT_OF_MEMORY"
UNSUPPORTED = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"


class CaptureCase(ScriptCase):
    movable = "off"

    def words(self, words, **variables):
        """Each line that was printed, as (word, result)."""
        self.log.unlink(missing_ok=True)
        done = self.run_in([str(PROGRAMS / "capturing"), *words.split()], self.environment(**variables))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [tuple(line.split()) for line in done.stdout.splitlines()]

    def last_alloc(self):
        return [record for record in self.checked_records() if record["kind"] == "alloc"][-1]

    def spilled(self):
        record = self.last_alloc()
        return record["reason"] == "oom" and held(record)["host"] + held(record)["managed"] > 0


class Inside(CaptureCase):
    """As PyTorch allocates in a capture: its thread's mode is relaxed for the call."""

    def test_a_relaxed_thread_is_served(self):
        for mode in (0, 1, 2):
            for chain in CHAINS:
                with self.subTest(mode, chain=chain):
                    results = self.words(f"{FULL} begin:a:{mode} mode:2 alloc:4 mode:0 status:a end:a look free", SPILL_OOM_CHAIN=chain)
                    self.assertNotIn(OOM, [result for _, result in results])
                    self.assertEqual(results[-5:], [("status", "1")] + [(word, "CUDA_SUCCESS") for word in
                                                                        ("status:a", "end:a", "look", "free")])
                    self.assertTrue(self.spilled())

    def test_by_all_steps_in_turn(self):
        """Those that wait or move leave the capture alone."""
        results = self.words(f"{FULL} begin:a:0 mode:2 alloc:4 mode:0 status:a end:a", SPILL_OOM_CHAIN="trim, demote, split")
        self.assertIn(("status", "1"), results)
        self.assertEqual(results[-1], ("end:a", "CUDA_SUCCESS"))
        self.assertTrue(self.spilled())

    def test_over_a_limit_without_a_relaxed_mode(self):
        """Our calls would break the capture, and so would the vendor's: the program sees an out of memory only."""
        results = self.words(f"{FULL} begin:a:0 alloc:4 status:a end:a", SPILL_DEVICE_LIMIT="12MiB")
        self.assertEqual(results[-4:], [("alloc:4", OOM), ("status", "1"), ("status:a", "CUDA_SUCCESS"), ("end:a", "CUDA_SUCCESS")])
        oom, = [record for record in self.checked_records() if record["kind"] == "oom"]
        self.assertEqual(oom["refused_by"], "stream capture")

    def test_without_a_relaxed_mode_it_is_the_vendor_s_answer(self):
        words = f"{FULL} begin:a:0 alloc:4 status:a end:a alloc:1"
        self.assertEqual(self.words(words), self.words(words, preload=False))
        self.assertIn(("alloc:4", UNSUPPORTED), self.words(words))

    def test_what_fits_is_served_as_without_us(self):
        words = "begin:a:0 mode:2 alloc:4 status:a end:a look free"
        self.assertEqual(self.words(words), self.words(words, preload=False))


class Afterwards(CaptureCase):
    def spills_after(self, *endings):
        for ending in endings:
            with self.subTest(ending):
                results = self.words(f"{FULL} {ending} alloc:4 look free")
                self.assertEqual(results[-3:], [("alloc:4", "CUDA_SUCCESS"), ("look", "CUDA_SUCCESS"), ("free", "CUDA_SUCCESS")])
                self.assertTrue(self.spilled())

    def test_spills_again(self):
        self.spills_after("begin:a:0 end:a", "begin:a:2 mode:2 alloc:4 mode:0 end:a")

    def test_invalidated(self):
        self.spills_after("begin:a:0 free end:a alloc:1")

    def test_unjoined(self):
        self.spills_after("begin:a:0 join:a:b end:a")

    def test_stream_destroyed(self):
        self.spills_after("begin:a:0 destroy:a")

    def test_context_ended(self):
        self.spills_after(f"begin:a:0 reset {FULL}")

    def test_context_of_its_stream_ended(self):
        """The capture is of the stream's context, which need not be the current one."""
        self.spills_after("foreign")

    def test_begin_refused(self):
        self.spills_after("begin:a:7", "begin:a:0 begin:a:0 end:a")


class Elsewhere(CaptureCase):
    """Another thread captures: ours spills unless the vendor forbids it, and breaks nothing."""

    def test_spills(self):
        for begin in ("thread:begin:a:1", "thread:begin:a:2", "mode:2 thread:begin:a:0"):
            for chain in CHAINS:
                with self.subTest(begin, chain=chain):
                    results = self.words(f"{FULL} {begin} alloc:4 thread:status:a thread:end:a look", SPILL_OOM_CHAIN=chain)
                    self.assertEqual(results[-5:], [("alloc:4", "CUDA_SUCCESS"), ("status", "1"),
                                                    ("status:a", "CUDA_SUCCESS"), ("end:a", "CUDA_SUCCESS"),
                                                    ("look", "CUDA_SUCCESS")])
                    self.assertTrue(self.spilled())

    def test_no_prefetch(self):
        """It would use the default stream, for which a stream that captures may not wait."""
        words = "blocking alloc:1 {} alloc:4 thread:status:a thread:end:a look"
        options = {"SPILL_OOM_CHAIN": "managed", "SPILL_DEVICE_RESERVE": "0", "SPILL_SIM_FAIL": "cuMemAlloc_v2:2"}
        results = self.words(words.format("thread:begin:a:2"), **options)
        self.assertEqual({result for _, result in results if result != "1"}, {"CUDA_SUCCESS"})
        self.assertEqual(held(self.last_alloc())["device"], 0)
        self.words(words.format(""), **options)
        self.assertGreater(held(self.last_alloc())["device"], 0, "it has room for it otherwise")

    def test_one_that_begins_before_the_wait_of_a_free(self):
        """The vendor refuses the wait, as on HIP. The program's free succeeds, and the memory is released later."""
        words, calls = f"{FULL} alloc:4 free alloc:4 look free", self.folder / "calls"
        self.assertEqual(set(dict(self.words(words, SPILL_OOM_CHAIN="host", SPILL_SIM_TRACE=calls)).values()), {"CUDA_SUCCESS"})
        names = [name for name in calls.read_text(encoding="utf-8").splitlines() if name in ("cuMemAlloc_v2", "cuMemHostAlloc", "cuMemFree_v2")]
        usual, spill = self.checked_records()[-1]["live"], names.index("cuMemHostAlloc")
        wait = names[:spill].count("cuMemAlloc_v2") + 1
        results = self.words(words, SPILL_OOM_CHAIN="host", SPILL_SIM_FAIL=f"cuMemAlloc_v2:{wait}:900")
        self.assertEqual({result for _, result in results}, {"CUDA_SUCCESS"})
        self.assertEqual(self.checked_records()[-1]["live"], usual)

    def test_forbidden(self):
        words = f"{FULL} thread:begin:a:0 alloc:4 thread:status:a thread:end:a"
        self.assertEqual(self.words(words), self.words(words, preload=False))
        self.assertIn(("alloc:4", UNSUPPORTED), self.words(words))

    def test_ended_by_the_wrong_thread_it_goes_on(self):
        results = self.words(f"{FULL} begin:a:1 thread:end:a alloc:4 end:a alloc:4", SPILL_DEVICE_LIMIT="12MiB")
        self.assertEqual([result for word, result in results if word == "alloc:4"][-2:], [OOM, "CUDA_SUCCESS"])


class Moving(CaptureCase):
    """Nothing moves while anyone captures; behind it the older make way again."""

    movable = "on"

    def moved(self):
        return self.moves(self.checked_records())

    def test_nothing_in_one(self):
        for mode in (0, 1, 2):
            with self.subTest(mode):
                results = self.words(f"{FULL} begin:a:{mode} mode:2 alloc:4 mode:0 status:a end:a look", **MOVED)
                self.assertEqual(results[-4:], [("status", "1")] + [(word, "CUDA_SUCCESS") for word in ("status:a", "end:a", "look")])
                self.assertEqual(self.moved(), [])
                self.assertIn({"place": "demote", "error": "stream capture"}, self.last_alloc()["tried"])

    def test_what_was_made_in_one_moves_behind_it(self):
        results = self.words("begin:a:0 mode:2 alloc:4 mode:0 end:a alloc:4 alloc:4 alloc:4 look free", **MOVED)
        self.assertEqual({result for word, result in results if word != "status"}, {"CUDA_SUCCESS"})
        self.assertEqual(self.moved(), [(0, 2)])

    def test_nothing_beside_one(self):
        for begin in ("thread:begin:a:1", "thread:begin:a:2", "mode:2 thread:begin:a:0"):
            with self.subTest(begin):
                results = self.words(f"{FULL} {begin} alloc:4 thread:status:a thread:end:a look", **MOVED)
                self.assertEqual(results[-5:], [("alloc:4", "CUDA_SUCCESS"), ("status", "1"), ("status:a", "CUDA_SUCCESS"),
                                                ("end:a", "CUDA_SUCCESS"), ("look", "CUDA_SUCCESS")])
                self.assertEqual(self.moved(), [])
                self.assertIn({"place": "demote", "error": "stream capture"}, self.last_alloc()["tried"])

    def test_behind_one(self):
        for ending in ("begin:a:0 end:a", "begin:a:2 mode:2 mode:0 end:a", "begin:a:0 join:a:b end:a", "begin:a:0 destroy:a",
                       "begin:a:7", "begin:a:0 begin:a:0 end:a", "foreign"):
            with self.subTest(ending):
                results = self.words(f"{FULL} {ending} alloc:4 look free", **MOVED)
                self.assertEqual(results[-3:], [("alloc:4", "CUDA_SUCCESS"), ("look", "CUDA_SUCCESS"), ("free", "CUDA_SUCCESS")])
                self.assertEqual(self.moved(), [(0, 2)])
                self.assertEqual(self.last_alloc()["place"], "movable")


if __name__ == "__main__":
    unittest.main()

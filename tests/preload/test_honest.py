"""Honest first: who asks again after an out of memory frees its caches first; everyone else never sees one."""
import shutil
import unittest

from harness import MIB, PROGRAMS, Case, held
from scripted import MOVED

TORCH = PROGRAMS / "libc10_cuda.so"
RUNTIME = PROGRAMS / "libc10_hip.so"  # any other known name
PLAIN = PROGRAMS / "libplain_retrier.so"


class HonestCase(Case):
    movable = "off"

    def words(self, words, library=TORCH, **variables):
        """What each word printed, as (result, failures so far), on a device of 32 MiB; and the log, checked."""
        self.log.unlink(missing_ok=True)
        command = [PROGRAMS / "retrier", library] if library else [PROGRAMS / "retrier_program"]
        done = self.run_program([*map(str, command), *words.split()], vram="32MiB", **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [(line.split()[1], int(line.split()[2])) for line in done.stdout.splitlines()]

    def lines(self, kind):
        return [record for record in self.checked_records() if record["kind"] == kind]

    def host_bytes(self):
        return sum(held(record)["host"] + held(record)["managed"] for record in self.lines("alloc"))


# 28 of 32 MiB are taken, of which 24 are kept; 20 fit only if these are freed; 16 more not at all.
CACHE = "take:a:4 take:b:12 take:c:12 give:b give:c take:d:20"
MORE = CACHE + " take:e:16 check:a check:d check:e"


class Caches(HonestCase):
    def test_are_freed_before_anything_spills(self):
        for variant in ("", "segments "):
            with self.subTest(variant):
                results = self.words(variant + CACHE + " check:a check:d")
                self.assertEqual(results[-3:], [("again", 1), ("right", 1), ("right", 1)])
                self.assertEqual(self.host_bytes(), 0)
                oom, = self.lines("oom")
                self.assertEqual(oom["refused_by"], "oom.honest_first")
                self.assertEqual(oom["tried"][-1]["error"], "oom.honest_first")
                self.assertEqual(self.lines("exit")[0]["spills"], 0)

    def test_of_an_allocator_above_the_runtime(self):
        """The driver is called by the runtime; who called that is the one that asks again."""
        results = self.words(MORE, RUNTIME)
        self.assertEqual(results[-4:], [("again", 2), ("right", 2), ("right", 2), ("right", 2)])
        self.assertEqual({record["api"] for record in self.lines("oom")}, {"cudaMalloc"})

    def test_of_an_allocator_known_by_its_path(self):
        module = self.folder / "cupy_backends" / "cuda" / "api" / "runtime.cpython-312-x86_64-linux-gnu.so"
        module.parent.mkdir(parents=True)
        shutil.copy(PLAIN, module)
        self.assertEqual(self.words(MORE, module)[-1], ("right", 2))
        self.assertEqual(self.words("segments " + MORE, module)[-1], ("right", 0))

    def test_what_does_not_fit_without_them_spills_at_the_repeat(self):
        results = self.words(MORE)
        self.assertEqual(results[-4:], [("again", 2), ("right", 2), ("right", 2), ("right", 2)])
        spilled = self.lines("alloc")[-1]
        self.assertEqual((spilled["bytes"], spilled["reason"]), (16 * MIB, "oom"))
        self.assertIn({"place": "honest_first", "error": "surfaced before"}, spilled["tried"])
        self.assertGreater(held(spilled)["host"], 0)
        self.assertEqual([oom["refused_by"] for oom in self.lines("oom")], ["oom.honest_first"] * 2)

    def test_what_was_placed_is_a_success(self):
        """So the next failure is a first one again, and the caches are freed for it."""
        results = self.words(CACHE + " take:e:16 give:d take:f:18 check:f")
        self.assertEqual(results[-2:], [("again", 3), ("right", 3)])
        self.assertEqual(held(self.lines("alloc")[-1])["host"], 0)

    def test_segments_of_the_repeated_run_do_not_surface_again(self):
        """8 of 2 MiB, of which 4 fit: one failure, and the other 4 are on host."""
        results = self.words("segments " + MORE, SPILL_DEVICE_RESERVE="0")
        self.assertEqual(results[-4:], [("again", 2), ("right", 2), ("right", 2), ("right", 2)])
        self.assertEqual(self.host_bytes(), 8 * MIB)
        self.assertEqual(len(self.lines("oom")), 2)

    def test_each_run_of_segments_is_a_new_failure(self):
        results = self.words("segments take:a:28 take:b:8 take:c:6 check:a check:b check:c")
        self.assertEqual([failures for _, failures in results[1:4]], [0, 1, 2])
        self.assertEqual(len(self.lines("oom")), 2)

    def test_a_limit_is_a_full_device(self):
        results = self.words(MORE, SPILL_DEVICE_LIMIT="24MiB")
        self.assertEqual([result for result, _ in results[-3:]], ["right"] * 3)
        spilled = self.lines("alloc")[-1]
        self.assertEqual(spilled["reason"], "limit")
        self.assertIn({"place": "honest_first", "error": "surfaced before"}, spilled["tried"])
        self.assertEqual(self.lines("oom")[-1]["refused_by"], "oom.honest_first")


class Moving(HonestCase):
    """The caches first, too, before anything moves; what they do not help makes the older give way."""

    movable = "on"

    def moving(self, words):
        return self.words(words, **{name: value for name, value in MOVED.items() if name != "SPILL_MOVABLE_ENABLE"})

    def test_caches_are_freed_before_anything_moves(self):
        for variant in ("", "segments "):
            with self.subTest(variant):
                results = self.moving(variant + CACHE + " check:a check:d")
                self.assertEqual(results[-3:], [("again", 1), ("right", 1), ("right", 1)])
                oom, = self.lines("oom")
                self.assertEqual(oom["refused_by"], "oom.honest_first")
                self.assertEqual(self.lines("move"), [])

    def test_the_repeat_moves(self):
        results = self.moving(MORE)
        self.assertEqual(results[-4:], [("again", 2), ("right", 2), ("right", 2), ("right", 2)])
        last = self.lines("alloc")[-1]
        self.assertEqual((last["place"], last["bytes"], last["reason"]), ("movable", 16 * MIB, "fits"))
        self.assertEqual([oom["refused_by"] for oom in self.lines("oom")], ["oom.honest_first"] * 2)
        # 8 of 32 MiB were free.
        self.assertEqual(sum(move["bytes"] for move in self.lines("move")), 8 * MIB)

    def test_what_was_served_by_a_move_is_a_success(self):
        """So the next failure is a first one again."""
        results = self.moving(CACHE + " take:e:16 take:f:4 check:d check:e check:f")
        self.assertEqual(results[-5:], [("again", 2), ("again", 3), ("right", 3), ("right", 3), ("right", 3)])


class Others(HonestCase):
    def test_never_see_a_failure(self):
        for library in (PLAIN, None):
            for variant in ("", "segments "):
                with self.subTest(library, variant=variant):
                    results = self.words(variant + MORE, library)
                    self.assertEqual({failures for _, failures in results}, {0})
                    self.assertNotIn("WRONG", dict(results))
                    self.assertEqual(self.lines("oom"), [])
                    self.assertGreater(self.host_bytes(), 0)

    def test_caches_switched_off(self):
        results = self.words(MORE, PYTORCH_NO_CUDA_MEMORY_CACHING=1)
        self.assertEqual(results[-1], ("right", 0))


class Options(HonestCase):
    def test_off(self):
        results = self.words(MORE, SPILL_OOM_HONEST_FIRST="off")
        self.assertEqual(results[-1], ("right", 0))

    def test_on_is_for_all(self):
        for library in (PLAIN, None):
            with self.subTest(library):
                results = self.words(MORE, library, SPILL_OOM_HONEST_FIRST="on")
                self.assertEqual(results[-1], ("right", 2))

    def test_observe_changes_no_result(self):
        words = CACHE + " take:e:16"
        bare = self.run_program([str(PROGRAMS / "retrier"), str(TORCH), *words.split()], vram="32MiB", preload=False)
        results = self.words(words, SPILL_MODE="observe")
        self.assertEqual([f"{word} {result} {failures}" for word, (result, failures) in zip(words.split(), results)],
                         bare.stdout.splitlines())
        self.assertNotIn("oom.honest_first", [oom["refused_by"] for oom in self.lines("oom")])

    def test_without_a_chain_it_is_the_driver_s_own(self):
        results = self.words(CACHE + " take:e:16", SPILL_OOM_CHAIN="")
        self.assertEqual(results[-1], ("FAILED", 3))
        self.assertNotIn("oom.honest_first", [oom["refused_by"] for oom in self.lines("oom")])

    def test_window(self):
        """In no time at all nothing is a repeat: the failure is the program's."""
        results = self.words(CACHE + " take:e:16", SPILL_OOM_HONEST_WINDOW="0s")
        self.assertEqual(results[-1], ("FAILED", 3))

    def test_bad_window(self):
        done = self.run_program([str(PROGRAMS / "retrier_program"), "take:a:4"], SPILL_OOM_HONEST_WINDOW="60")
        self.assertIn("bad time '60': a unit must follow", done.stderr)


if __name__ == "__main__":
    unittest.main()

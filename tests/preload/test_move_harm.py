"""What a program, a tool or a full device does while memory moves: nobody waits for ever, and nothing is tried again and again.

Runs harm.c, whose clock passes by words alone: what the library does is counted, never timed.
"""
import os
import pathlib
import unittest

from harness import MIB, PROGRAMS
from movable_case import OOM, SUCCESS, MovableCase

# Of 64 MiB; 6 MiB of a make way for b.
FULL = "alloc:a:40 fill:a"
AGAIN = "alloc:b:28 fill:b verify:a verify:b"
SECONDS_3 = "work:6000:500"
SECOND = "work:2000:500"


class Harm(MovableCase):
    # Long enough for a machine that does other things.
    usual = MovableCase.usual | {"SPILL_MOVABLE_WAIT": "500ms"}

    def setUp(self):
        super().setUp()
        sim = pathlib.Path(os.environ["SIM_PATH"].split(":")[0])
        self.driver = self.folder / "driver"
        self.driver.mkdir()
        (self.driver / "libcuda.so.1").symlink_to(PROGRAMS / "harm_front.so")
        (self.driver / "libharm_behind.so.1").symlink_to(sim / "libcuda.so.1")

    def program(self, words, *, preload=True, **variables):
        self.log.unlink(missing_ok=True)
        return self.run_program([str(PROGRAMS / "harm"), *words.split()], preload=preload,
                                **{**self.usual, "LD_LIBRARY_PATH": self.driver, **variables})

    @staticmethod
    def numbers(done, question):
        """What each such question printed."""
        lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return [int(answer) for asked, answer in lines if asked == question and answer.isdigit()]

    def reasons(self):
        return [move["reason"] for move in self.moves()]


class Inside(Harm):
    """What happens in the middle of a move. Who waits for himself is ended by a signal."""

    def test_a_thread_that_is_to_be_cancelled(self):
        """It makes room for the reserve in a call that is no cancellation point, and the mover is there for others afterwards."""
        done = self.good(f"{FULL} cancelled:22 verify:a alloc:b:8 free:a", SPILL_DEVICE_RESERVE="16MiB")
        self.assertEqual(self.result(done, "cancelled:22"), SUCCESS)
        self.assertIn("reserve", self.reasons())

    def test_the_driver_calls_what_we_hook(self):
        """By its exported name, as a tool's callback does, while this thread keeps all submissions out; to host and back."""
        done = self.good(f"{FULL} inside:copy:nested {AGAIN} inside:copy:nested free:b {SECOND} verify:a")
        self.assertEqual(done.stdout.count("inside copy"), 2)
        self.assertEqual(self.reasons(), ["oom", "free"])

    def test_a_graph_gets_nodes(self):
        """The driver looks at their addresses, and a chunk that is just being mapped elsewhere has none: the nodes wait for that."""
        for kind in ("set_node", "copy_node", "any_node"):
            with self.subTest(kind):
                done = self.good(f"{FULL} inside:unmap:{kind} {AGAIN} captured verify:a")
                self.assertIn("inside unmap", done.stdout)
                self.assertEqual(self.result(done, "captured"), SUCCESS)

    def test_a_signal_handler_forks(self):
        done = self.good(f"{FULL} inside:copy:fork {AGAIN} free:a free:b")
        self.assertIn("inside copy", done.stdout)
        self.assertEqual(self.reasons(), ["oom"])

    def test_a_capture_that_another_thread_begins(self):
        """The first movable block is tried with a mark, which breaks what captures: none begins meanwhile."""
        done = self.good(f"inside:mark:capture alloc:a:40 captured fill:a {AGAIN}")
        self.assertIn("inside mark", done.stdout)
        self.assertEqual(self.result(done, "captured"), SUCCESS)
        self.assertEqual([record["place"] for record in self.allocs() if record["bytes"] > MIB], ["movable"] * 2)

    def test_a_capture_that_forbids_the_trial(self):
        """One that allows no thread to allocate begins behind the mark: the trial is made again later."""
        done = self.program("inside:pinned:global alloc:a:8 captured work:400:500 alloc:b:8")
        self.assertIn("inside pinned", done.stdout)
        self.assertEqual(self.allocs()[-1]["place"], "movable")
        self.assertEqual(self.notes("movable"), [])


class InVain(Harm):
    """What cannot be done is tried more and more rarely."""

    def test_promotion_when_nothing_can_be_made(self):
        done = self.good(f"{FULL} {AGAIN} refuse:device free:b count:device {SECONDS_3} count:device accept {SECONDS_3} {SECONDS_3} verify:a")
        tries = self.numbers(done, "count device")[1]
        self.assertTrue(1 <= tries <= 8, tries)
        self.assertEqual([move["bytes"] for move in self.moves("promote")], [6 * MIB], "and when it can, it comes back")

    def test_promotion_when_it_has_to_leave_again(self):
        """Also where the program frees something each time."""
        cycle = "alloc:b:28 work:20:250 free:b work:240:250"
        self.good(f"{FULL} {' '.join([cycle] * 20)} verify:a")
        self.assertTrue(2 <= len(self.moves("promote")) <= 8, self.reasons())

    def test_the_reserve_that_cannot_be_made_whole(self):
        """Calls that need room try it again twice as late each time, and ask the driver as rarely; later, it is made whole."""
        done = self.good(f"{FULL} refuse:host alloc:b:18 count:host event:200:2000 count:host count:info event:500:1 count:info accept "
                         "event:1000:2000", SPILL_DEVICE_RESERVE="16MiB")
        self.assertLessEqual(self.numbers(done, "count host")[1], 12, "of 200 calls in 0.4 s")
        self.assertLessEqual(self.numbers(done, "count info")[1], 4, "of 500 calls in 0.5 s")
        self.assertEqual(self.reasons(), ["reserve"])

    def test_a_reserve_that_is_whole_is_not_asked_for_each_time(self):
        done = self.good(f"{FULL} event:1:1 count:info event:1000:1 count:info", SPILL_DEVICE_RESERVE="16MiB")
        self.assertLessEqual(self.numbers(done, "count info")[1], 10, "once a millisecond")

    def test_a_device_that_is_busy(self):
        """Waited for half as long each time, down to 5 ms, and no host memory is made for it; once it is not, all is as before."""
        done = self.program(f"{FULL} count:host busy waited alloc:b:26 waited count:host "
                            "alloc:b:60 waited alloc:b:60 waited alloc:b:60 waited alloc:b:60 waited alloc:b:60 waited count:host "
                            "calm alloc:b:60 busy waited alloc:c:30 waited calm verify:a", SPILL_OOM_CHAIN="demote",
                            SPILL_MOVABLE_WAIT="50ms")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        waits = self.numbers(done, "waited")
        first, again = waits[1:7], waits[8]
        for waited, least in zip(first, (50, 25, 12, 6, 5, 5)):
            self.assertTrue(least <= waited < least + 5, first)
        self.assertTrue(50 <= again < 55, waits)
        self.assertEqual(self.numbers(done, "count host")[1:], [2, 0])
        self.assertEqual([result for word, result in self.results(done) if word == "alloc:b:60"], [OOM] * 5 + [SUCCESS])


class Accounts(Harm):
    def test_movable_memory_takes_from_the_reserve(self):
        """At once, and not when the clock says that it is time to look."""
        self.good("alloc:a:40 alloc:b:10 count:info alloc:c:10", SPILL_DEVICE_RESERVE="16MiB")
        self.assertEqual(self.reasons(), ["reserve"])

    def test_what_was_exchanged_is_not_owed_for_ever(self):
        """b came when nothing could move, so that older ones gave way to it; when it has to leave later, they stay."""
        came = f"alloc:a:30 fill:a alloc:e:10 fill:e busy alloc:b:40 calm fill:b {SECOND}"
        self.good(f"{came} verify:b")
        exchanged = self.reasons().count("exchange")
        self.assertGreater(exchanged, 0)
        self.good(f"{came} free:a {SECOND} alloc:n:2 alloc:d:20 fill:d {SECOND} verify:b verify:d verify:e")
        left = [move["reason"] for move in self.moves("demote")]
        self.assertIn("oom", left)
        self.assertEqual(left.count("exchange"), exchanged)


del Harm, MovableCase
if __name__ == "__main__":
    unittest.main()

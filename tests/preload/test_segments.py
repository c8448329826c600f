"""Memory in stream order that moves: ranges of segments. ordered.c is the program; a segment has 64 MiB, a small one 16, a chunk 16."""
import unittest

from harness import MIB
from test_ordered import OrderedCase

GONE = "failed after"
# The device has room for four of 24 MiB beside the program's own: a part of the first makes way for the fifth.
FIVE = "alloc:a:24m fill:a alloc:b:24m fill:b alloc:c:24m fill:c alloc:e:24m fill:e alloc:f:24m fill:f"
CHECK = "verify:a verify:b verify:c verify:e verify:f sync"


class SegmentCase(OrderedCase):
    movable = "on"
    usual = {"SPILL_DEVICE_RESERVE": "0", "SPILL_MOVABLE_WAIT": "30s", "SPILL_MOVABLE_ENABLE": "on"}

    def ordered(self, words, *, preload=True, vram="112MiB", **variables):
        return super().ordered(words, preload=preload, vram=vram, **{**self.usual, **variables})

    @staticmethod
    def sides(done, letter):
        return [line.split()[2] for line in done.stdout.splitlines() if line.startswith(f"where {letter} ")]

    @staticmethod
    def said(done, word):
        return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(word + " ")]

    def segments(self):
        """MiB of each segment that was made."""
        return [r["bytes"] // MIB for r in self.checked_records() if r["kind"] == "alloc" and r["place"] == "movable"]


class Moves(SegmentCase):
    def test_older_memory_makes_way(self):
        done = self.good(self.ordered(f"{FIVE} where:a where:b where:c where:e where:f {CHECK}"))
        self.assertIn("h", "".join(self.sides(done, letter)[0] for letter in "abc"))
        self.assertEqual((self.sides(done, "e"), self.sides(done, "f")), (["d" * 12], ["d" * 12]))
        moves = [r for r in self.checked_records() if r["kind"] == "move"]
        self.assertTrue(moves and all(move["api"] == "cuMemAllocAsync" for move in moves))

    def test_without_it_the_newcomer_is_on_the_host(self):
        done = self.good(self.ordered(f"{FIVE} where:f {CHECK}", SPILL_MOVABLE_ENABLE="off"))
        self.assertEqual(self.sides(done, "f"), ["h" * 12])

    def test_it_comes_back(self):
        """When the newcomers are freed, and the pool may keep nothing, there is room again."""
        done = self.good(self.ordered(f"{FIVE} where:b {CHECK} free:e free:f sync " + "fill:a sync " * 200 + "where:b verify:a verify:b sync"))
        self.assertIn("h", self.sides(done, "b")[0])
        self.assertEqual(self.sides(done, "b")[1], "d" * 12)

    def test_plain_memory_makes_way_and_is_served(self):
        done = self.good(self.ordered("plain:p:24m:2 fill:p alloc:a:24m fill:a alloc:b:24m fill:b alloc:c:24m fill:c where:c verify:p verify:a verify:b verify:c "
                                      "sync free:a free:b free:c sync plain:q:24m fill:q verify:q verify:p sync where:q sfree:p sfree:q"))
        self.assertEqual((self.sides(done, "c"), self.sides(done, "q")), (["d" * 12], ["d" * 12]))

    def test_small_ones_move(self):
        done = self.good(self.ordered("alloc:s:4k:2000 fill:s alloc:a:24m:4 fill:a where:a verify:s verify:a sync free:s free:a sync"))
        self.assertEqual(self.sides(done, "a"), ["d" * 12])
        self.no_leak(self.checked_records())

    def test_a_kernel_in_flight_on_all_of_it(self):
        """A move waits for it, and the program does not."""
        self.good(self.ordered(f"hold:x {FIVE} hold:a free:a alloc:g:24m fill:g go {CHECK[9:]} verify:g sync"))


class Order(SegmentCase):
    def test_the_same_stream_gets_it_at_once(self):
        done = self.good(self.ordered("alloc:a:24m hold:a free:a alloc:b:24m same:b:a fill:b verify:b go sync"))
        self.assertEqual(self.said(done, "same"), [1])

    def test_another_stream_does_not(self):
        """Not while the kernel runs that still writes there; after it and a mark it does."""
        done = self.good(self.ordered("alloc:a:24m hold:a free:a stream:other alloc:b:24m same:b:a fill:b sync verify:b sync go "
                                      "stream:own sync stream:other verify:b sync free:b sync alloc:c:60m alloc:e:24m same:e:a fill:e verify:e sync",
                                      vram="256MiB"))
        self.assertEqual(self.said(done, "same")[0], 0)

    def test_a_stream_that_was_made_anew_does_not(self):
        done = self.good(self.ordered("stream:other alloc:a:24m hold:a free:a renew stream:other alloc:b:24m same:b:a fill:b verify:b sync go sync",
                                      vram="256MiB"))
        self.assertEqual(self.said(done, "same"), [0])

    def test_nor_after_cuMemFree(self):
        done = self.good(self.ordered("alloc:a:24m hold:a sfree:a alloc:b:24m same:b:a fill:b verify:b go sync", vram="256MiB"))
        self.assertEqual(self.said(done, "same"), [0])

    def test_rounds_need_no_more_than_the_first(self):
        self.good(self.ordered("alloc:a:1m:30 fill:a verify:a free:a alloc:b:3m:20 fill:b verify:b free:b " * 20 + "sync", vram="256MiB"))
        self.assertLessEqual(sum(self.segments()), 128)


class Figures(SegmentCase):
    WORDS = "used:d most:d alloc:a:24m alloc:b:6m used:d free:a used:d most:d restart:d most:d sync used:d free:b sync used:d reserved:d"

    def test_they_are_the_driver_s(self):
        """All but the reserved bytes in between, for which the driver has other steps."""
        alone = self.ordered(self.WORDS, preload=False)
        self.assertEqual(self.good(self.ordered(self.WORDS)).stdout, alone.stdout)

    def test_memory_that_spilled_counts(self):
        """In segments, and by each step beside them. Nothing is left when it is freed, in stream order or not."""
        words = "pool:p:device alloc:a:24m:5:p used:p most:p free:a used:p alloc:b:24m:5:p used:p sync sfree:b sync used:p reserved:p"
        for how, chain in (("on", "demote"), ("off", "split"), ("off", "managed"), ("off", "host")):
            with self.subTest(chain):
                done = self.good(self.ordered(words, vram="96MiB", SPILL_MOVABLE_ENABLE=how, SPILL_OOM_CHAIN=chain))
                used = self.said(done, "used")
                self.assertEqual([self.said(done, "most"), used[:3]], [[120 * MIB], [120 * MIB, 0, 120 * MIB]])
                # Of a driver's own memory cuMemFree does not lower it.
                self.assertEqual(used[3], sum(r["bytes"] for r in self.checked_records()
                                              if r["kind"] == "alloc" and r["place"] == "device" and r["bytes"] == 24 * MIB) // 2)

    def test_a_pool_that_cannot_end(self):
        """The default pool is the same one afterwards, with the memory that it had."""
        done = self.ordered("alloc:a:24m endpool:d alloc:b:24m used:d free:a free:b used:d sync trim:d reserved:d")
        self.assertEqual([line for line in done.stdout.splitlines() if "ERROR" in line], ["endpool:d CUDA_ERROR_INVALID_VALUE"])
        self.assertEqual(self.said(done, "used"), [48 * MIB, 0])
        self.assertEqual(self.said(done, "reserved"), [0])

    def test_a_pool_gives_back_at_a_synchronisation(self):
        words = "info alloc:a:24m fill:a free:a {} info"
        for how, kept in (("sync", False), ("keep sync", True), ("sync trim:d", False), ("keep sync trim:d", False)):
            with self.subTest(how):
                before, after = self.said(self.good(self.ordered(words.format(how))), "free")[-2:]
                self.assertEqual(after < before, kept)

    def test_answers_about_a_pointer(self):
        words = "alloc:a:24m about:a alloc:b:4k about:b pool:p:device alloc:c:3m:1:p about:c"
        self.assertEqual(self.good(self.ordered(words)).stdout, self.ordered(words, preload=False).stdout)


class Pools(SegmentCase):
    def test_an_own_pool(self):
        self.good(self.ordered("pool:p:device alloc:a:24m:5:p fill:a verify:a sync free:a sync endpool:p"))
        self.assertTrue(self.segments())
        self.no_leak(self.checked_records())

    def test_allocations_outlive_their_pool(self):
        self.good(self.ordered("pool:p:device alloc:a:24m:2:p fill:a endpool:p pool:q:device alloc:b:24m:2:q fill:b verify:a verify:b sync "
                               "free:a free:b sync endpool:q"))
        self.no_leak(self.checked_records())

    def test_an_exportable_one_stays_with_the_driver(self):
        self.good(self.ordered("pool:p:exportable alloc:a:24m:2:p fill:a verify:a sync free:a sync"))
        self.assertEqual(self.segments(), [])

    def test_a_shared_one_moves(self):
        """Also memory that it had before. The other device uses it without peer access, on either side and after it came back."""
        use = "sync stream:peer verify:a fill:a verify:a verify:b fill:b sync stream:own verify:a verify:b sync"
        for words in ("alloc:a:24m:1:p fill:a share:p alloc:b:24m:3:p fill:b", "share:p alloc:a:24m:1:p fill:a alloc:b:24m:3:p fill:b"):
            with self.subTest(words):
                done = self.good(self.ordered(f"pool:p:device {words} {use} plain:x:24m:4 where:a {use} sfree:x " + "fill:a sync " * 200 +
                                              f"where:a {use}", SPILL_SIM_DEVICES="2"))
                self.assertIn("h", self.sides(done, "a")[0])
                self.assertEqual(self.sides(done, "a")[1], "d" * 12)
                self.assertGreater(len(self.segments()), 1)

    def test_for_a_stream_of_another_device(self):
        """The memory is on the pool's device, beside segments and on the host. So that device can use it without peer access."""
        for how, vram, places in (("on", "256MiB", {"movable", "device"}), ("off", "96MiB", {"device", "split"})):
            with self.subTest(how):
                words = "pool:p:device alloc:s:60m:1:p stream:peer alloc:a:24m:2:p stream:own fill:a verify:a sync free:a sync"
                self.good(self.ordered(words, vram=vram, SPILL_MOVABLE_ENABLE=how, SPILL_SIM_DEVICES="2"))
                records = [r for r in self.checked_records() if r["kind"] == "alloc" and r["api"] == "cuMemAllocFromPoolAsync"]
                self.assertEqual(({r["place"] for r in records}, {r["dev"] for r in records}), (places, {0}))

    def test_a_shared_one_is_shared_where_it_spills(self):
        """The other device needs no peer access: before the memory spills, and after."""
        for size in ("24m:5", "100k:800"):
            for words in (f"share:p alloc:a:{size}:p", f"alloc:a:{size}:p share:p"):
                for chain in ("split", "managed", "host"):
                    with self.subTest(words, chain=chain):
                        self.good(self.ordered(f"pool:p:device plain:x:24m {words} fill:a sync stream:peer verify:a fill:a verify:a sync stream:own verify:a sync "
                                               "free:a sync sfree:x", vram="96MiB", SPILL_MOVABLE_ENABLE="off", SPILL_OOM_CHAIN=chain,
                                               SPILL_SIM_DEVICES="2"))
                        self.assertIn(chain, {r["place"] for r in self.checked_records() if r["kind"] == "alloc"})

    def test_a_limit_holds_where_the_driver_s_pool_serves_after_all(self):
        """A segment of 64 MiB is below movable.min, so only the large request gets one."""
        self.good(self.ordered("alloc:a:128m fill:a alloc:b:24m:3 fill:b verify:a verify:b sync", vram="1GiB", SPILL_MOVABLE_MIN="100MiB",
                               SPILL_DEVICE_LIMIT="160MiB", SPILL_OOM_CHAIN="demote, host"))
        records = self.checked_records()
        self.assertEqual(self.segments(), [128])
        self.assertLessEqual(records[-1]["peak"]["device_bytes"], 160 * MIB)
        self.assertGreater(records[-1]["demotions"], 0)

    def test_a_pool_with_a_largest_size_stays_with_the_driver(self):
        self.good(self.ordered("pool:p:bounded alloc:a:24m:2:p fill:a verify:a sync free:a sync"))
        self.assertEqual(self.segments(), [])

    def test_a_rule_asks_for_movable_memory(self):
        """On an empty device, too."""
        policy = self.folder / "rules.conf"
        policy.write_text("[rule here]\napi = cuMemAllocAsync\nplace = movable\n", encoding="utf-8")
        for variables, segments in (({}, []), ({"SPILL_POLICY": str(policy)}, [64])):
            self.good(self.ordered("alloc:a:6m fill:a verify:a sync", vram="1GiB", SPILL_MOVABLE_ENABLE="auto", **variables))
            self.assertEqual(self.segments(), segments)

    def test_a_rule_keeps_it_with_the_driver(self):
        policy = self.folder / "rules.conf"
        policy.write_text("[rule here]\napi = cuMemAllocAsync\npriority = hot\n", encoding="utf-8")
        self.good(self.ordered("alloc:a:24m fill:a verify:a sync", SPILL_POLICY=str(policy)))
        self.assertEqual(self.segments(), [])


if __name__ == "__main__":
    unittest.main()

"""Memory in stream order: what does not fit spills in stream order, and goes back without anybody waiting."""
import unittest

from harness import KERNELS, MIB, PROGRAMS, before_end
from scripted import ScriptCase

GONE = "failed after"


class OrderedCase(ScriptCase):
    """A device of 96 MiB: the vendor's pools grow by 32."""

    movable = "off"

    def ordered(self, words, *, preload=True, vram="96MiB", **variables):
        self.log.unlink(missing_ok=True)
        command = [str(PROGRAMS / "ordered"), KERNELS, *words.split()]
        return self.run_in(command, self.environment(preload=preload, SPILL_SIM_VRAM=vram, **variables), None)

    def data(self, records):
        """The allocations of whole MiB, as (place, bytes)."""
        return [(r["place"], r["bytes"] // MIB) for r in records if r["kind"] == "alloc" and r["bytes"] >= MIB]

    def no_leak(self, records):
        self.assertEqual({k: v for k, v in records[-1]["live"].items() if k != "host_bytes"},
                         {"device_bytes": 0, "managed_bytes": 0})
        self.assertLess(records[-1]["live"]["host_bytes"], 4096)  # the program's own pinned words


class Spill(OrderedCase):
    def test_alone_it_is_out_of_memory(self):
        done = self.ordered("alloc:a:24m:5", preload=False)
        self.assertIn("failed after 3, pointer 0\nalloc:a:24m:5 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)

    def test_in_stream_order(self):
        """Work in flight on all of it when it is freed: a free that waited would wait for ever."""
        words = "alloc:a:24m:5 fill:a verify:a sync hold:a free:a alloc:b:8m:2 fill:b verify:b go sync free:b sync"
        for chain in ("split", "host", "managed"):
            for stream in ("own", "default", "thread"):
                with self.subTest(chain, stream=stream):
                    self.good(self.ordered(f"stream:{stream} {words}", SPILL_OOM_CHAIN=chain))
                    records = self.checked_records()
                    self.assertEqual(self.data(records)[:5], [("device", 24)] * 3 + [(chain, 24)] * 2)
                    self.no_leak(records)
                    frees = [r["api"] for r in records if r["kind"] == "free"]
                    self.assertEqual(len(frees), 7)

    def test_rounds_reuse_what_is_pinned(self):
        """A steady state pins once: the pool keeps what it has."""
        self.good(self.ordered("alloc:a:24m:5 fill:a verify:a free:a " * 20 + "sync", SPILL_OOM_CHAIN="host",
                               SPILL_HOST_LIMIT="70MiB"))
        records = self.checked_records()
        self.assertEqual(self.data(records), ([("device", 24)] * 3 + [("host", 24)] * 2) * 20)
        self.no_leak(records)

    def test_freed_by_cuMemFree(self):
        self.good(self.ordered("alloc:a:24m:5 fill:a verify:a sync sfree:a alloc:b:24m:5 fill:b verify:b sync sfree:b"))
        self.no_leak(self.checked_records())

    def test_from_a_pool_of_its_own(self):
        words = "pool:p:device alloc:a:24m:5:p fill:a verify:a sync about:a free:a sync endpool:p"
        self.good(self.ordered(words))
        records = self.checked_records()
        self.assertEqual(self.data(records), [("device", 24)] * 3 + [("split", 24)] * 2)
        self.no_leak(records)

    def test_small_ones(self):
        self.good(self.ordered("plain:x:30m:3 alloc:a:4k:2000 fill:a verify:a sync free:a sync sfree:x"))
        self.no_leak(self.checked_records())

    def test_without_such_pools(self):
        """A driver that makes no pools: placed as plain memory, freed behind an event."""
        words = ("plain:x:30m:3 alloc:a:24m:2 fill:a verify:a sync hold:a free:a go sync alloc:b:24m:2 fill:b verify:b "
                 "free:b sync sfree:x")
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.good(self.ordered(words, SPILL_OOM_CHAIN=chain, SPILL_SIM_FAIL="cuMemPoolCreate:1+:801",
                                       SPILL_HOST_LIMIT="60MiB", SPILL_DEVICE_RESERVE="8MiB"))
                records = self.checked_records()
                self.assertEqual(self.data(records), [("device", 30)] * 3 + [(chain, 24)] * 4)
                self.no_leak(records)

    def test_each_vendor_call_that_fails(self):
        """Every call of ours in turn: the program is served another way, or told."""
        for function in ("cuMemPoolCreate", "cuMemPoolSetAttribute", "cuMemPoolSetAccess", "cuMemAllocFromPoolAsync",
                         "cuMemPoolGetAttribute", "cuMemPoolTrimTo", "cuDeviceGetMemPool"):
            for nth in (1, 2):
                with self.subTest(function, nth=nth):
                    done = self.ordered("alloc:a:24m:5 fill:a verify:a sync free:a sync",
                                        SPILL_SIM_FAIL=f"{function}:{nth}")
                    self.good(done)
                    self.no_leak(self.checked_records())

    def test_nowhere_to_go(self):
        done = self.ordered("alloc:a:24m:5 free:a sync alloc:b:24m:3 fill:b verify:b free:b sync", SPILL_OOM_CHAIN="",
                            SPILL_HOST_LIMIT="0")
        self.assertIn("failed after 3, pointer 0\nalloc:a:24m:5 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
        self.no_leak(self.checked_records())


class Looks(OrderedCase):
    def test_as_memory_of_the_pool_that_was_asked(self):
        for pool in ("", ":p"):
            words = f"pool:p:device alloc:a:8m:1{pool} about:a"
            alone = self.ordered(words, preload=False)
            self.assertEqual(alone.returncode, 0)
            for chain in ("host", "managed"):
                with self.subTest(chain, pool=pool):
                    spilled = self.ordered(words, SPILL_OOM_CHAIN=chain, SPILL_DEVICE_LIMIT="1MiB")
                    self.assertEqual(spilled.stdout, alone.stdout)
                    self.assertEqual(self.data(self.checked_records()), [(chain, 8)])


class Limit(OrderedCase):
    def test_what_a_pool_keeps_counts(self):
        """40 MiB free in a pool that keeps them are not there for cuMemAlloc: until they are trimmed."""
        words = "keep alloc:a:20m:2 fill:a free:a sync reserved:d plain:b:30m fill:b verify:b sync reserved:d sfree:b"
        done = self.good(self.ordered(words, SPILL_DEVICE_LIMIT="80MiB"))
        self.assertEqual(self.numbers(done, "reserved"), [64 * MIB, 0])
        records = self.checked_records()
        self.assertEqual(self.data(records), [("device", 20)] * 2 + [("device", 30)])
        last = [r for r in records if r["kind"] == "alloc"][-1]
        self.assertEqual(last["tried"][0]["error"], "device.limit")
        self.no_leak(records)

    def test_no_trim_no_room(self):
        words = "keep alloc:a:20m:2 fill:a free:a sync plain:b:30m fill:b verify:b sync reserved:d sfree:b"
        done = self.good(self.ordered(words, SPILL_DEVICE_LIMIT="80MiB", SPILL_OOM_CHAIN="host"))
        self.assertEqual(self.numbers(done, "reserved"), [64 * MIB])
        self.assertEqual(self.data(self.checked_records())[-1], ("host", 30))

    def test_what_the_vendor_took_back_is_seen(self):
        """A pool that keeps nothing gives it back at a synchronisation, which nobody tells us: no spill, no trim."""
        done = self.good(self.ordered("alloc:a:20m:3 fill:a free:a sync plain:b:40m fill:b verify:b sync sfree:b",
                                      SPILL_DEVICE_LIMIT="96MiB", SPILL_OOM_CHAIN="host"))
        records = self.checked_records()
        self.assertEqual(self.data(records), [("device", 20)] * 3 + [("device", 40)])
        self.assertNotIn("tried", [r for r in records if r["kind"] == "alloc"][-1])
        self.assertEqual(done.stderr, "")

    def test_holds_for_stream_ordered_memory(self):
        self.good(self.ordered("alloc:a:24m:6 fill:a verify:a sync free:a sync", vram="512MiB",
                               SPILL_DEVICE_LIMIT="100MiB"))
        records = self.checked_records()
        places = [place for place, _ in self.data(records)]
        # A fourth would fit in the limit, but not in what three chunks of 32 MiB have left over in pieces.
        self.assertEqual(places, ["device"] * 3 + ["split"] * 3)
        spilled = [r for r in records if r["kind"] == "alloc" and r["place"] == "split" and r["bytes"] >= MIB]
        self.assertEqual({r["reason"] for r in spilled}, {"limit"})
        self.no_leak(records)

    def test_a_destroyed_pool_gives_its_charge_back(self):
        rounds = "pool:p:device alloc:a:24m:2:p fill:a verify:a free:a sync endpool:p " * 6
        self.good(self.ordered(rounds, vram="512MiB", SPILL_DEVICE_LIMIT="70MiB", SPILL_OOM_CHAIN=""))
        self.no_leak(self.checked_records())


class Trim(OrderedCase):
    def test_before_anything_spills(self):
        """60 MiB that the device's pool keeps are given back for another pool, and for plain memory."""
        for other in ("plain:b:60m", "pool:p:device alloc:b:60m:1:p"):
            with self.subTest(other):
                done = self.good(self.ordered(f"keep alloc:a:30m:2 fill:a free:a sync {other} fill:b verify:b sync"))
                self.assertEqual(self.data(self.checked_records())[-1], ("device", 60))
                self.assertEqual(done.stderr, "")

    def test_pending_frees_of_ours(self):
        """The device part of a split that is on its way out serves the next request; one in use is not waited for long."""
        for held, place in (("", "device"), ("hold:a ", "split")):
            with self.subTest(place):
                words = (f"plain:x:40m plain:a:90m fill:a verify:a sync {held}free:a plain:b:50m go fill:b verify:b sync "
                         "sfree:b sfree:x")
                done = self.good(self.ordered(words, SPILL_OOM_CHAIN="trim,split", SPILL_DEVICE_RESERVE="0",
                                              SPILL_SIM_FAIL="cuMemPoolCreate:1+:801"))
                self.assertEqual(self.data(self.checked_records()), [("device", 40), ("split", 90), (place, 50)])
                self.assertEqual(before_end(done.stderr).count("\n"), 1)

    def test_host_memory_that_is_kept(self):
        """What our pool keeps on host is given back when host.limit would refuse."""
        words = "plain:x:90m alloc:a:60m fill:a verify:a free:a sync plain:b:60m fill:b verify:b sync sfree:b sfree:x"
        self.good(self.ordered(words, SPILL_OOM_CHAIN="trim,host", SPILL_HOST_LIMIT="80MiB"))
        records = self.checked_records()
        self.assertEqual(self.data(records), [("device", 90), ("host", 60), ("host", 60)])
        self.no_leak(records)


class NobodyWaits(OrderedCase):
    """Where the driver's own call does not wait, ours must not: a kernel that only the next word lets go would hold it for ever."""

    def test_cuMemFree_of_ordered_memory(self):
        words = "plain:x:94m alloc:a:40m alloc:b:8m fill:a fill:b sync hold:b sfree:a go sync free:b sfree:x sync"
        for chain in ("split", "managed"):
            with self.subTest(chain):
                self.good(self.ordered(words, SPILL_OOM_CHAIN=chain))
                records = self.checked_records()
                self.assertEqual(self.data(records)[1], (chain, 40))
                self.no_leak(records)

    def test_and_nobody_gets_it_before_the_kernel_ends(self):
        """The kernel writes to it after the free. Another stream must not find that in memory that it got meanwhile."""
        for chain in ("split", "host", "managed"):
            for size, plain in (("40m", "94m"), ("100k:20", "95m")):
                with self.subTest(chain, size=size):
                    words = (f"plain:x:{plain} alloc:a:{size} fill:a sync hold:a sfree:a stream:other alloc:b:{size} fill:b sync verify:b "
                             "sync go stream:own sync stream:other verify:b sync free:b sync sfree:x sync")
                    self.good(self.ordered(words, SPILL_OOM_CHAIN=chain, SPILL_DEVICE_RESERVE="0"))
                    records = self.checked_records()
                    self.assertIn(chain, {r["place"] for r in records if r["kind"] == "alloc"})
                    self.no_leak(records)

    def test_allocations_behind_a_capture(self):
        """What was freed in it is still to be waited for; a free does that, an allocation goes on."""
        words = ("plain:x:94m plain:a:40m alloc:b:4m fill:a fill:b sync begin:2 sfree:a end hold:b plain:c:1m alloc:d:1m go "
                 "sync sfree:c free:d free:b sfree:x sync")
        self.good(self.ordered(words, SPILL_OOM_CHAIN="split"))
        records = self.checked_records()
        self.assertEqual(self.data(records)[1], ("split", 40))
        self.no_leak(records)


class PlainFree(OrderedCase):
    """Memory in stream order that cuMemFree frees while a kernel still writes it. Nobody else gets it before the kernel ends."""

    def freed_while_used(self, chain, words):
        words = ("plain:x:94m alloc:a:40m fill:a sync hold:a stream:other begin:2 sfree:a end stream:peer plain:c:1m sfree:c plain:d:1m "
                 f"sfree:d {words} go stream:own sync")
        done = self.good(self.ordered(words, SPILL_SIM_DEVICES=2, SPILL_MOVABLE_ENABLE="off", SPILL_OOM_CHAIN=chain,
                                      SPILL_DEVICE_RESERVE="0"))
        self.checked_records()
        return done.stdout

    def test_a_capture_forbids_the_mark_and_another_device_frees(self):
        """The other device's frees do not wait for the kernel. Once it has ended, its memory is used again."""
        for chain in ("split", "host"):
            with self.subTest(chain=chain):
                other = "stream:other alloc:b:40m same:b:a fill:b sync verify:b sync"
                self.assertIn("same 0", self.freed_while_used(chain, other))
                again = "stream:own go sync stream:peer plain:e:1m sfree:e plain:f:1m sfree:f stream:other alloc:b:40m same:b:a fill:b sync verify:b"
                self.assertIn("same 1", self.freed_while_used(chain, again))

    def test_a_stream_of_another_device_than_the_pool(self):
        words = ("pool:p:device share:p alloc:z:8m:1:p fill:z sync stream:peer alloc:a:40m:1:p fill:a sync hold:a sfree:a "
                 "stream:own alloc:y:1m free:y alloc:b:40m:1:p same:b:a fill:b sync verify:b sync alloc:e:40m:1:p same:e:a fill:e sync "
                 "verify:e stream:peer go sync stream:own verify:b verify:e sync")
        done = self.good(self.ordered(words, vram="256MiB", SPILL_SIM_DEVICES=2, SPILL_MOVABLE_ENABLE="on"))
        self.assertNotIn("same 1", done.stdout)


class GraphMemory(OrderedCase):
    def test_counts_toward_the_limit(self):
        """A captured allocation takes device memory when its graph is launched: what comes after it has so much less."""
        words = "begin:2 alloc:a:40m free:a end run sync plain:b:40m fill:b verify:b sync sfree:b"
        for limit, place in (("128MiB", "device"), ("70MiB", "split")):
            with self.subTest(limit):
                self.good(self.ordered(words, vram="512MiB", SPILL_DEVICE_LIMIT=limit, SPILL_OOM_CHAIN="split",
                                       SPILL_DEVICE_RESERVE="0"))
                self.assertEqual(self.data(self.checked_records())[-1], (place, 40))

    def test_until_the_program_trims_it(self):
        words = "begin:2 alloc:a:40m free:a end run sync graphtrim plain:b:40m fill:b verify:b sync sfree:b"
        self.good(self.ordered(words, vram="512MiB", SPILL_DEVICE_LIMIT="70MiB"))
        self.assertEqual(self.data(self.checked_records())[-1], ("device", 40))

    def launches(self, words, **variables):
        """The same words alone and under the library, where some plain memory can make way (auto) or all of it (on)."""
        words = f"plain:a:16m:10 fill:a sync begin:2 alloc:g:{words}"
        alone = self.ordered(words, vram="256MiB", preload=False)
        under = self.ordered(words, vram="256MiB", SPILL_DEVICE_RESERVE="0", **variables)
        self.assertEqual((alone.returncode, under.returncode), (0, 0), alone.stderr + under.stderr)
        return alone, under

    def test_a_refused_launch_costs_no_more_than_alone(self):
        """It loses to the device what it had got: where all that can move is not enough, it is not asked again."""
        for first, follow in (("run run run run", "off"), ("run run", "on"), ("upload run", "off")):
            with self.subTest(first, follow=follow):
                alone, under = self.launches(f"150m free:g end {first} sync info verify:a sync sfree:a info run sync info",
                                             SPILL_MOVABLE_ENABLE="auto", SPILL_MOVABLE_FOLLOW=follow)
                self.assertEqual(alone.stdout.count("OUT_OF_MEMORY"), len(first.split()))
                self.assertIn("run CUDA_SUCCESS", alone.stdout)
                self.assertEqual(under.stdout, alone.stdout)
                self.assertEqual([r for r in self.checked_records() if r["kind"] == "move"], [])

    def test_a_launch_gets_room_for_all_of_it(self):
        """Enough can make way. What was free is lost once, as alone."""
        for follow in ("off", "on"):
            with self.subTest(follow=follow):
                alone, under = self.launches("150m free:g end run sync verify:a sync run sync", SPILL_MOVABLE_ENABLE="on",
                                             SPILL_MOVABLE_FOLLOW=follow)
                self.assertEqual(alone.stdout.count("run CUDA_ERROR_OUT_OF_MEMORY"), 2)
                self.assertEqual(under.stdout.count("run "), under.stdout.count("run CUDA_SUCCESS"), under.stdout)
                moves = [r for r in self.checked_records() if r["kind"] == "move"]
                self.assertEqual({r["api"] for r in moves if r["reason"] == "room"}, {"cuGraphLaunch"})

    def test_memory_that_is_used_in_turn_counts_once(self):
        """Five times 60 MiB at one address, one behind the other: more than there is, if it were all there at once."""
        alone, under = self.launches("60m free:g " + "alloc:g:60m free:g " * 4 + "end plain:b:80m run sync verify:a sync",
                                     SPILL_MOVABLE_ENABLE="on")
        self.assertEqual(alone.stdout.count("OUT_OF_MEMORY"), 1)
        self.assertNotIn("OUT_OF_MEMORY", under.stdout)


class Capture(OrderedCase):
    SPLIT = {"SPILL_OOM_CHAIN": "split", "SPILL_SIM_FAIL": "cuMemPoolCreate:1+:801"}

    def test_a_free_of_ours_leaves_it_valid(self):
        """cuMemFree of what we placed would wait, and break the capture; so would looking at events."""
        for chain in ("split", "host", "managed"):
            for mode in (0, 1, 2):
                with self.subTest(chain, mode=mode):
                    words = (f"plain:x:94m plain:a:40m fill:a sync begin:{mode} sfree:a end "
                             "plain:b:40m fill:b verify:b sync sfree:b sfree:x")
                    done = self.ordered(words, SPILL_OOM_CHAIN=chain, SPILL_HOST_LIMIT="70MiB")
                    self.good(done)
                    records = self.checked_records()
                    self.assertEqual(self.data(records)[1:], [(chain, 40)] * 2)
                    self.no_leak(records)

    def test_allocations_in_it_are_the_drivers(self):
        words = "begin:0 alloc:a:8m end alloc:b:8m fill:b verify:b free:b sync"
        for limit in ("none", "64MiB"):
            with self.subTest(limit):
                self.good(self.ordered(words, SPILL_DEVICE_LIMIT=limit))
                self.assertEqual(self.data(self.checked_records()), [("device", 8)])

    def test_a_free_in_it_gets_the_drivers_answer(self):
        words = "plain:x:94m plain:a:40m begin:2 free:a end sfree:a sfree:x"
        done = self.ordered(words, SPILL_OOM_CHAIN="host")
        self.assertIn("free:a CUDA_ERROR_INVALID_VALUE", done.stdout)
        self.assertIn("sfree:a CUDA_SUCCESS", done.stdout)
        self.no_leak(self.checked_records())


class Elsewhere(OrderedCase):
    def test_pools_that_are_not_on_a_device(self):
        """The program asked for host memory: accounted, and its own affair."""
        for kind, begin, end in (("host", "pool", "endpool:p"), ("managed", "pool", "endpool:p"), ("host", "find", ""), ("managed", "find", "")):
            with self.subTest(kind, begin=begin):
                done = self.good(self.ordered(f"{begin}:p:{kind} alloc:a:24m:5:p fill:a verify:a sync free:a sync {end}",
                                              SPILL_DEVICE_LIMIT="10MiB"))
                records = self.checked_records()
                self.assertEqual(self.data(records), [(kind, 24)] * 5)
                self.assertEqual({r["reason"] for r in records if r["kind"] == "alloc"}, {"asked"})
                self.assertEqual(done.stderr, "")
                self.no_leak(records)


class Contexts(OrderedCase):
    def test_memory_of_pools_outlives_them(self):
        """As the driver has it (docs/measurements.md): freed after its context is gone, by whoever comes."""
        words = "create stream:default alloc:a:24m:5 destroy:c fill:a verify:a sync free:a sync"
        self.good(self.ordered(words))
        records = self.checked_records()
        self.assertEqual({r["reason"] for r in records if r["kind"] == "free"}, {"free"})
        self.no_leak(records)

    def test_what_waits_goes_with_its_context(self):
        words = ("create stream:default plain:x:60m alloc:a:60m hold:a free:a go destroy:c plain:b:90m fill:b verify:b "
                 "sync sfree:b")
        done = self.ordered(words, SPILL_OOM_CHAIN="split", SPILL_SIM_FAIL="cuMemPoolCreate:1+:801",
                            SPILL_DEVICE_RESERVE="0")
        self.assertIn("destroy:c CUDA_SUCCESS", done.stdout)
        records = self.checked_records()
        self.assertEqual(self.data(records)[-1], ("device", 90))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Corners that a review found: locks of the loader, exact limits, double frees, cancellation, no memory for the books."""
import unittest

from harness import LIBRARY, MIB, PROGRAMS, before_end, decided, freed, held, of_release
from scripted import MOVED, ScriptCase

CHAINS = ("split", "managed", "host")
SIZE_MAX = (1 << 64) - 1


class CornerCase(ScriptCase):
    movable = "off"

    def corner(self, *words, name="corner", preload=True, **variables):
        self.log.unlink(missing_ok=True)
        return self.run_in([str(PROGRAMS / name), *map(str, words)], self.environment(preload=preload, **variables))

    def fresh(self, words, **variables):
        self.log.unlink(missing_ok=True)
        return self.script(words, **variables)

    @staticmethod
    def allocs(records):
        return decided(records)


class Locks(CornerCase):
    def test_constructor_that_allocates(self):
        """It runs under the loader's lock; a thread in its first allocation wants that lock."""
        done = self.corner("constructor", PROGRAMS / "corner_plugin.so")
        self.assertEqual(done.returncode, 0, "it hangs: " + done.stdout)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["constructor 0", "inside the library", "thread CUDA_SUCCESS"])
        self.assertEqual(len(self.allocs(self.checked_records())), 2)

    def test_end_while_a_thread_is_in_the_ledger(self):
        done = self.corner("exit", name="corner_ledger")
        self.assertEqual(done.returncode, 0)
        self.assertIn("a thread is in the ledger", done.stdout)
        # The thread may go on behind the totals.
        exits = [r for r in self.records() if r["kind"] == "exit"]
        self.assertEqual(len(exits), 1)
        self.assertGreaterEqual(exits[0]["allocs"], 4)


class Cancel(CornerCase):
    """The vendor's calls are no cancellation points, so neither are those that spill."""

    def test_pending(self):
        for how in ("first", "plain", "spill", "free"):
            for chain in CHAINS:
                with self.subTest(how, chain=chain):
                    done = self.corner("cancel-" + how, SPILL_OOM_CHAIN=chain)
                    self.assertEqual(done.returncode, 0)
                    self.assertEqual(done.stdout.splitlines()[-1], "returned CUDA_SUCCESS")
                    self.checked_records()


class Limits(CornerCase):
    def used(self, words, **variables):
        """Device bytes that the words take, by the driver."""
        done = self.good(self.fresh(f"retain:0 info {words} info", SPILL_SIM_VRAM="256MiB", **variables))
        before, after = self.numbers(done, "free")
        return before - after

    def test_counts_what_the_driver_takes(self):
        """A byte more than 1 MiB takes 2 MiB."""
        words = f"alloc:a:{MIB + 1}:64"
        self.assertEqual(self.used(words), 128 * MIB)
        used = self.used(words, SPILL_DEVICE_LIMIT="65MiB", SPILL_OOM_CHAIN="host")
        self.assertLessEqual(used, 65 * MIB)
        self.assertEqual(used, 64 * MIB, "and all that it allows")
        places = [r["place"] for r in self.allocs(self.checked_records())]
        self.assertEqual((places.count("device"), places.count("host")), (32, 32))

    def test_what_is_freed_is_there_again(self):
        used = self.used(f"alloc:a:{MIB + 1}:32 alloc:s:1000:1000 free:a free:s alloc:a:{MIB + 1}:32",
                         SPILL_DEVICE_LIMIT="65MiB", SPILL_OOM_CHAIN="")
        self.assertEqual(used, 64 * MIB)

    def test_share_of_a_device_that_is_silent_once(self):
        """Without an answer there is no limit yet; with the next one there is: 12.6 MiB."""
        done = self.fresh("retain:0 alloc:a:2m:3 alloc:b:4m:2", SPILL_DEVICE_LIMIT="90%", SPILL_OOM_CHAIN="host",
                          SPILL_SIM_FAIL="cuMemGetInfo_v2:1")
        self.good(done)
        allocs = self.allocs(self.checked_records())
        self.assertEqual([(r["place"], r["reason"]) for r in allocs], [("device", "fits")] * 4 + [("host", "limit")])

    def test_managed_memory_is_bounded_by_the_host(self):
        """It is granted without being there: only the guard can say no."""
        with open("/proc/meminfo", encoding="ascii") as file:
            mib = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:")) // 1024
        each = mib // 8
        done = self.fresh(f"retain:0 alloc:a:{each}m:40", SPILL_OOM_CHAIN="managed", SPILL_HOST_LIMIT="1TiB",
                          SPILL_SIM_ADDRESSES=f"{2 * mib}MiB")
        self.assertIn(f"alloc:a:{each}m:40 CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
        records = self.checked_records()
        # 8 of these are all there is; others may have freed some since.
        self.assertLessEqual(len(self.allocs(records)), 12)
        oom, = [r for r in records if r["kind"] == "oom"]
        self.assertEqual(oom["refused_by"], "host.reserve")
        self.assertEqual(oom["tried"][-1], {"place": "managed", "error": "host.reserve"})


class Clock(CornerCase):
    """A pair that fits is the common case, and a reading of the clock is a tenth of its price."""

    def readings(self, **variables):
        done = self.corner("clock", SPILL_SIM_VRAM="4GiB", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [int(count) for count in done.stdout.splitlines()[-1].split()[1:]]

    def test_a_pair_that_fits(self):
        """Nothing can move, so that the reserve is kept from requests. A line of the log takes three readings."""
        driver = self.readings(preload=False)
        for log, most in (("off", [1, 0]), (str(self.log), [4, 3])):
            with self.subTest(log):
                counted = self.readings(SPILL_LOG=log)
                self.assertEqual([mine - its for mine, its in zip(counted, driver)], most)


class TooLarge(CornerCase):
    """A request that cannot be served is no other thread's trouble."""

    def test_above_the_limit(self):
        for huge in (1024 * MIB, SIZE_MAX):
            done = self.corner("race", huge, 100_000, SPILL_DEVICE_LIMIT="8MiB", SPILL_OOM_CHAIN="", SPILL_LOG="off")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(done.stdout.splitlines()[-1], "all were served")

    def beside(self, huge, **variables):
        done = self.corner("beside", huge, SPILL_LOG_STDERR="off", **variables)
        *rest, last = done.stdout.splitlines()
        self.assertEqual(last, "huge CUDA_ERROR_OUT_OF_MEMORY")
        self.assertEqual(set(rest), {"fill CUDA_SUCCESS", "beside CUDA_SUCCESS", "free CUDA_SUCCESS"}, done.stdout)
        self.checked_records()

    def test_above_the_limit_of_the_host(self):
        for chain in CHAINS:
            for huge in (1024 * MIB, 1 << 62):
                with self.subTest(chain, huge=huge):
                    self.beside(huge, SPILL_HOST_LIMIT="8MiB", SPILL_OOM_CHAIN=chain)

    def test_without_any_limit(self):
        for chain in (*CHAINS, "split, managed, host"):
            with self.subTest(chain):
                self.beside(1 << 62, SPILL_HOST_LIMIT="1000TiB", SPILL_OOM_CHAIN=chain)

    def test_the_vendors_own_result(self):
        words = f"retain:0 alloc:h:{SIZE_MAX} alloc:i:{SIZE_MAX - 4096} alloc:j:{1 << 63} alloc:a:4m:3 fill:a verify:a free:a"
        alone = self.script(words, preload=False)
        self.assertEqual(alone.stdout.count("CUDA_ERROR_OUT_OF_MEMORY"), 3)
        for chain in ("", *CHAINS, "split, managed, host"):
            with self.subTest(chain):
                self.assertEqual(self.fresh(words, SPILL_OOM_CHAIN=chain).stdout, alone.stdout)
                self.checked_records()


class FreeTwice(CornerCase):
    """The second free of a block in a shared chunk is an error, and its neighbours stay."""

    def test_cuda(self):
        for chain in CHAINS:
            with self.subTest(chain):
                done = self.fresh("retain:0 alloc:d:4m:3 alloc:e:1m:2 alloc:a:4k alloc:b:4k fill:b free:a again:a "
                                  "verify:b alloc:c:4k:2 fill:c verify:b verify:c free:b free:c", SPILL_OOM_CHAIN=chain)
                results = dict(self.results(done))
                self.assertEqual(results.pop("again:a"), "CUDA_ERROR_INVALID_VALUE")
                self.assertEqual(set(results.values()), {"CUDA_SUCCESS"})
                self.assertNotIn("wrong", done.stdout)
                places = [r["place"] for r in self.allocs(self.checked_records()) if r["bytes"] == 4096]
                self.assertEqual(places, [chain] * 4)

    def test_hip(self):
        seven = {"LD_LIBRARY_PATH": of_release(7)}
        for name, chains, path in (("corner_hip", ("managed", "host"), {}), ("corner_hip_7", CHAINS, seven)):
            alone = self.corner(name=name, preload=False, SPILL_SIM_VRAM="64MiB", **path)
            self.assertIn("free again 1", alone.stdout)
            self.assertNotRegex(alone.stdout, "wrong bytes [1-9]")
            for chain in chains:
                with self.subTest(name, chain=chain):
                    done = self.corner(name=name, SPILL_OOM_CHAIN=chain, **path)
                    self.assertEqual(done.stdout, alone.stdout)
                    places = [r["place"] for r in self.allocs(self.checked_records()) if r["bytes"] == 4096]
                    self.assertEqual(places, [chain] * 3)

    def test_hip_served_by_the_driver_after_a_failure_of_ours(self):
        """No last error of a call that the program has not made, by either rule of HIP's."""
        policy = self.folder / "policy.conf"
        policy.write_text("[rule mine]\nplace = host\n", encoding="utf-8")
        policy.chmod(0o600)
        for rule in ("overwritten", "sticky"):
            with self.subTest(rule):
                alone = self.corner(name="corner_hip", preload=False, SPILL_SIM_VRAM="64MiB", SPILL_SIM_LAST_ERROR=rule)
                done = self.corner(name="corner_hip", SPILL_POLICY=policy, SPILL_SIM_FAIL="hipHostMalloc:1+", SPILL_SIM_VRAM="64MiB",
                                   SPILL_SIM_LAST_ERROR=rule)
                self.assertEqual(done.stdout, alone.stdout)
                self.assertEqual({r["place"] for r in self.allocs(self.checked_records())}, {"device"})


class FreeAsync(CornerCase):
    def test_rounds_leave_nothing(self):
        words = "retain:0 async " + "alloc:x:4m:5 alloc:s:100k:40 fill:x fill:s verify:x verify:s free:x free:s sync " * 20
        for chain in CHAINS:
            with self.subTest(chain):
                # With a limit for one round, of the device and of the host, every round is served.
                done = self.fresh(words + "info", SPILL_OOM_CHAIN=chain, SPILL_DEVICE_LIMIT="12MiB",
                                  SPILL_HOST_LIMIT="24MiB")
                self.good(done)
                self.assertEqual(self.numbers(done, "free"), [14 * MIB])
                records = self.checked_records()
                self.assertEqual(len(self.allocs(records)), 20 * 45)
                self.assertEqual(len(freed(records)), 20 * 45)
                self.assertEqual(set(records[-1]["live"].values()), {0})
                self.assertEqual({r["api"] for r in freed(records)}, {"cuMemFreeAsync"})

    def test_the_memory_waits_for_the_work(self):
        """The program does not: the kernel still writes to it when the free returns, and may."""
        for chain in CHAINS:
            for size in ("6m", "100k"):
                with self.subTest(chain, size=size):
                    done = self.fresh(f"retain:0 alloc:d:4m:3 alloc:e:1m:2 alloc:x:{size} async freeheld:x free:d free:e "
                                      "sync info", SPILL_OOM_CHAIN=chain)
                    self.good(done)
                    self.assertIn("the kernel was held when the free returned", done.stdout)
                    self.assertEqual(self.numbers(done, "free"), [14 * MIB])
                    records = self.checked_records()
                    self.assertEqual(self.allocs(records)[-1]["place"], chain)
                    self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_plain_memory_in_use(self):
        done = self.good(self.fresh("retain:0 alloc:x:4m async freeheld:x sync info"))
        self.assertEqual(self.numbers(done, "free"), [14 * MIB])
        self.assertEqual(set(self.checked_records()[-1]["live"].values()), {0})


class MovedFreeAsync(CornerCase):
    """Frees in the order of a stream of memory that has moved, or has still to move."""

    movable = "on"

    def test_rounds_leave_nothing(self):
        words = "retain:0 async " + "alloc:x:4m:5 alloc:s:100k:10 fill:x fill:s verify:x verify:s free:x free:s sync " * 10
        self.good(self.fresh(words, SPILL_HOST_LIMIT="24MiB", **MOVED))
        records = self.checked_records()
        self.assertEqual(len(freed(records)), 10 * 15)
        self.assertEqual(set(records[-1]["live"].values()), {0})
        self.assertGreater(len(self.moves(records)), 10)

    def test_what_is_on_its_way_out_is_not_moved(self):
        """A kernel still writes to the first when it is freed; the next has to have its memory, or others'."""
        done = self.good(self.fresh("retain:0 alloc:x:4m alloc:d:4m:2 fill:d async freeheld:x alloc:y:4m:2 fill:y verify:y verify:d "
                                    "free:y free:d sync alloc:z:4m info", **MOVED))
        self.assertIn("the kernel was held when the free returned", done.stdout)
        # The next call of ours sees that the last have passed.
        self.assertEqual(self.numbers(done, "free"), [10 * MIB])
        records = self.checked_records()
        self.assertNotIn(0, [index for index, _ in self.moves(records)])
        self.assertEqual(records[-1]["live"]["device_bytes"], 4 * MIB)


class Rows(CornerCase):
    def test_the_pitch_is_the_vendors(self):
        """Spilled or not, and where there is no memory at all: 5 MB of rows where 2 MiB are left."""
        alone = self.script("retain:0 rows:5000", preload=False)
        self.assertIn("rows CUDA_SUCCESS pitch 5120", alone.stdout)
        for chain in CHAINS:
            with self.subTest(chain):
                done = self.fresh("retain:0 alloc:a:4m:3 rows:5000", SPILL_OOM_CHAIN=chain)
                self.assertEqual(done.stdout.splitlines()[-2:], alone.stdout.splitlines()[-2:])
                self.assertEqual(self.allocs(self.checked_records())[-1]["place"], chain)
        full = "retain:0 alloc:a:4m:3 rows:5000"
        self.assertEqual(self.fresh(full, SPILL_OOM_CHAIN="").stdout, self.script(full, preload=False).stdout)
        limited = self.fresh(full, SPILL_OOM_CHAIN="", SPILL_DEVICE_LIMIT="13MiB", SPILL_SIM_VRAM="64MiB")
        self.assertIn("rows CUDA_ERROR_OUT_OF_MEMORY pitch 5120", limited.stdout)


class Loud(CornerCase):
    def test_room_on_the_device_after_all(self):
        """The driver refused, as when memory is fragmented, but chunks fit: neither a line nor a spill."""
        first, room = "retain:0 alloc:a:4m fill:a verify:a", {"SPILL_DEVICE_RESERVE": "0", "SPILL_OOM_CHAIN": "split"}
        done = self.good(self.fresh(first, SPILL_SIM_FAIL="cuMemAlloc_v2:1", **room))
        self.assertEqual(done.stderr, "")
        records = self.checked_records()
        self.assertEqual(records[-1]["spills"], 0)
        self.assertEqual([(r["place"], held(r)["device"]) for r in self.allocs(records)], [("split", 4 * MIB)])
        done = self.good(self.fresh(first + " alloc:b:4m:4 fill:b verify:b", SPILL_SIM_FAIL="cuMemAlloc_v2:1", **room))
        self.assertEqual(before_end(done.stderr).count("\n"), 1)
        self.assertIn("placed in host memory", done.stderr)
        spilled = sum(held(r)["host"] > 0 for r in self.allocs(self.checked_records()))
        self.assertEqual(self.records()[-1]["spills"], spilled)


class Ids(CornerCase):
    def test_every_allocation_has_its_own(self):
        alone = self.corner("ids", preload=False, SPILL_SIM_VRAM="64MiB")
        self.assertIn("7 ids, 0 pairs the same", alone.stdout)
        for chain in CHAINS:
            with self.subTest(chain):
                done = self.corner("ids", SPILL_OOM_CHAIN=chain, SPILL_DEVICE_LIMIT="12MiB")
                self.assertNotIn("ERROR", done.stdout)
                self.assertNotIn("differ", done.stdout)
                self.assertIn("the same address", done.stdout, "or nothing is shown of re-allocation")
                self.assertIn("7 ids, 0 pairs the same", done.stdout)
                places = [r["place"] for r in self.allocs(self.checked_records())]
                self.assertEqual(places, ["device"] * 3 + [chain] * 6)


class NoMemory(CornerCase):
    """Whatever allocation of libspill's own fails, the program is served or told, and nothing is lost."""

    def nomem(self, filled, size, how="nomem", **variables):
        done = self.corner(how, filled, size, name="corner_ledger", **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        *fills, last = done.stdout.splitlines()
        self.assertEqual(fills, ["fill CUDA_SUCCESS"] * filled + ["free CUDA_SUCCESS"] * filled)
        _, refused, _, served, _, lost = last.split()
        self.assertEqual(lost, "0")
        self.assertEqual(set(self.checked_records()[-1]["live"].values()), {0})
        return int(refused), int(served)

    def test_spilled(self):
        for chain in CHAINS:
            # One fits beside nothing else: a charge that stays is seen at the next. A chunk is 8 MiB.
            for size, limit in ((4 * MIB, "4MiB"), (100_000, "8MiB")):
                with self.subTest(chain, size=size):
                    refused, served = self.nomem(3, size, SPILL_OOM_CHAIN=chain, SPILL_DEVICE_LIMIT="12MiB",
                                                 SPILL_HOST_LIMIT=limit, SPILL_DEVICE_RESERVE="0")
                    self.assertGreaterEqual(refused, 6, "placement, ledger entry and its place in the tree, twice")
                    self.assertEqual(served, 2, "both times when nothing failed")

    def test_plain(self):
        refused, served = self.nomem(2, 4 * MIB, SPILL_DEVICE_LIMIT="12MiB", SPILL_OOM_CHAIN="")
        self.assertEqual(refused, 0)
        self.assertGreaterEqual(served, 3, "the ledger entry failed, and twice nothing")

    def test_capped(self):
        """A charge to a rule's cap that stays is seen at the next."""
        policy = self.folder / "policy.conf"
        policy.write_text("[rule mine]\ncap = 4MiB\nover = refuse\n", encoding="utf-8")
        policy.chmod(0o600)
        for how in ("nomem", "nomem-handle"):
            with self.subTest(how):
                refused, served = self.nomem(0, 4 * MIB, how, SPILL_POLICY=policy)
                self.assertEqual(refused, 0)
                self.assertGreaterEqual(served, 3, "bookkeeping failed, and twice nothing")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""10,000 allocations of 4 KiB beyond the limit cost their bytes and little more; a host limit refuses by name."""
import unittest

from harness import MIB, decided, held
from scripted import ScriptCase

COUNT, BYTES = 10_000, 4096


class Small(ScriptCase):
    movable = "off"

    def many(self, chain, **variables):
        # Limit 1 MiB: the first 256 are the device's; all others spill. The bound of the host limit is the promise.
        words = f"retain:0 alloc:z:4k fill:z host alloc:a:4k:{COUNT} fill:a verify:a host granules:a free:a free:z info host"
        return self.good(self.script(words, SPILL_DEVICE_LIMIT="1MiB", SPILL_OOM_CHAIN=chain,
                                     SPILL_HOST_LIMIT=COUNT * BYTES + 64 * MIB, **variables))

    def test_host_memory(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                done = self.many(chain)
                before, after, end = self.numbers(done, "host")
                # All are written: so many pages there must be at least, less the device's MiB.
                self.assertGreater(after - before, COUNT * BYTES - 2 * MIB)
                self.assertLess(after - before, COUNT * BYTES + 64 * MIB)
                self.assertLess(end - before, 8 * MIB, "all comes back but one chunk for the next")
                # A page that nobody touched costs the simulator nothing, but a real driver pins whole granules.
                granules, = self.numbers(done, "granules")
                self.assertLess(granules * 2 * MIB, COUNT * BYTES + 64 * MIB)
                records = self.checked_records()
                places = [r["place"] for r in decided(records)]
                self.assertEqual(places.count("device"), MIB // BYTES)
                self.assertEqual(places.count(chain), COUNT + 1 - MIB // BYTES)
                self.assertEqual(self.numbers(done, "free")[-1], 14 * MIB)

    def test_freed_blocks_are_used_again(self):
        words = "retain:0" + f" alloc:a:4k:{COUNT} free:a" * 4 + f" alloc:a:4k:{COUNT} fill:a verify:a free:a"
        self.good(self.script(words, SPILL_DEVICE_LIMIT="1MiB", SPILL_HOST_LIMIT="104MiB", SPILL_LOG_LEVEL="spills"))


class HostLimit(ScriptCase):
    """A host limit that is too small refuses by name and says who holds what."""

    movable = "off"

    def refused(self, chain, size, count, **variables):
        self.log.unlink(missing_ok=True)
        done = self.script(f"retain:0 alloc:d:4m:3 alloc:e:6m alloc:f:{size}:{count} free:d free:e free:f info",
                           SPILL_OOM_CHAIN=chain, **variables)
        self.assertIn(f"alloc:f:{size}:{count} CUDA_ERROR_OUT_OF_MEMORY", done.stdout)
        self.assertEqual(self.numbers(done, "free"), [int(variables.get("SPILL_SIM_VRAM", 14 * MIB))])
        records = self.checked_records()
        oom, = [r for r in records if r["kind"] == "oom"]
        return records, oom

    def test_refused_by_name(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                records, oom = self.refused(chain, "4m", 3, SPILL_HOST_LIMIT="13MiB")
                self.assertEqual(oom["refused_by"], "host.limit")
                self.assertEqual(oom["bytes"], 4 * MIB)
                self.assertEqual([(t["place"], t["error"]) for t in oom["tried"]],
                                 [("device", "CUDA_ERROR_OUT_OF_MEMORY"), (chain, "host.limit")])
                allocs = decided(records)
                self.assertEqual(sum(held(r)["host"] + held(r)["managed"] for r in allocs), 10 * MIB)
                self.check_holders(oom, allocs)

    def check_holders(self, oom, allocs):
        """The ten largest, largest first, each a live allocation of the log."""
        holders = oom["holders"]
        sizes = [h["bytes"] for h in holders]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(sizes, sorted((r["bytes"] for r in allocs), reverse=True)[:10])
        by_seq = {r["seq"]: r for r in allocs}
        for holder in holders:
            alloc = by_seq[holder["seq"]]
            for field in ("bytes", "place", "api", "caller"):
                self.assertEqual(holder[field], alloc[field])

    def test_many_small_ones(self):
        # Chunks are charged whole: the next one does not fit under the limit, the blocks of those that do are used up.
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                records, oom = self.refused(chain, "64k", 1000, SPILL_HOST_LIMIT="30MiB")
                self.assertEqual(oom["refused_by"], "host.limit")
                allocs = decided(records)
                on_host = sum(held(r)["host"] + held(r)["managed"] for r in allocs)
                self.assertLessEqual(on_host, 30 * MIB)
                self.assertGreater(on_host, 20 * MIB)
                self.assertEqual(len(oom["holders"]), 10)
                self.check_holders(oom, allocs)

    def test_host_reserve(self):
        # A device of 18 MiB, so that what the words take first is the device's.
        _, oom = self.refused("host", "4m", 1, SPILL_HOST_RESERVE="1000TiB", SPILL_SIM_VRAM=18 * MIB)
        self.assertEqual(oom["refused_by"], "host.reserve")


if __name__ == "__main__":
    unittest.main(verbosity=2)

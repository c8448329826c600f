"""spill_malloc and spill_free, as PyTorch's CUDAPluggableAllocator calls them: preloaded, and only loaded by dlopen."""
import unittest

from harness import LIBRARY, MIB, PROGRAMS, apart, before_end, of_release
from scripted import ScriptCase


class Pluggable(ScriptCase):
    movable = "off"
    PLACE = {"pluggable": "split", "pluggable_hip": "host", "pluggable_hip_7": "split"}

    def run_one(self, name, *arguments, preload, vram="96MiB", **variables):
        self.log.unlink(missing_ok=True)
        variables.setdefault("SPILL_HOST_SHARE", "no")  # also where nothing is preloaded (harness.py)
        if name == "pluggable_hip_7":
            variables["LD_LIBRARY_PATH"] = of_release(7)
        environment = self.environment(preload=preload, SPILL_LOG=self.log, SPILL_LOG_LEVEL="each", SPILL_SIM_VRAM=vram, **variables)
        return self.run_in([str(PROGRAMS / name), LIBRARY, *map(str, arguments)], environment)

    def each(self):
        for name in self.PLACE:
            for preload in (True, False):
                with self.subTest(name, preload=preload):
                    yield name, preload

    def data(self, records):
        return [(r["place"], r["bytes"] // MIB) for r in records if r["kind"] == "alloc" and r["bytes"] >= MIB]

    def good_data(self, done, got):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all data right", done.stdout)
        self.assertIn("nothing 0", done.stdout)
        self.assertIn("huge 0", done.stdout)
        self.assertIn("no device 0", done.stdout)
        self.assertIn("stays 1", done.stdout, "a thread of libspill may still run in the library when the program closes it")
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("got")], [f"got {got}"] * 3)

    def test_what_does_not_fit_spills(self):
        """Without a reserve: on a slow machine it comes between the rounds, and then a third buffer does not fit."""
        for name, preload in self.each():
            done = self.run_one(name, 5, 24, 3, preload=preload, SPILL_HOST_LIMIT="70MiB", SPILL_DEVICE_RESERVE="0")
            self.good_data(done, 5)
            records = self.checked_records()
            self.assertEqual(self.data(records)[:5], [("device", 24)] * 3 + [(self.PLACE[name], 24)] * 2)
            self.assertEqual({r["api"] for r in records if r["kind"] == "alloc"}, {"spill_malloc"})
            self.assertEqual({r["api"] for r in records if r["kind"] == "free"}, {"spill_free"})
            self.assertTrue(all(r["caller"].startswith(name + "+0x") for r in records if r["kind"] == "alloc"))
            self.assertEqual(records[-1]["frees"], 15)
            self.assertEqual(set(records[-1]["live"].values()), {0})
            self.assertEqual(apart(before_end(done.stderr))[0].count("\n"), 1)
            if name == "pluggable":
                self.assertIn("context none", done.stdout, "the caller's thread is left as it was")

    def test_it_moves_only_if_the_library_sees_all_work(self):
        """Loaded for spill_malloc alone it does not know when a chunk is in use."""
        for preload in (True, False):
            for enable in ("on", "auto"):
                with self.subTest(enable, preload=preload):
                    self.good_data(self.run_one("pluggable", 5, 24, 3, preload=preload, SPILL_MOVABLE_ENABLE=enable), 5)
                    records = self.checked_records()
                    self.assertEqual("movable" in [r.get("place") for r in records], preload)
                    self.assertEqual("move" in [r["kind"] for r in records], preload)
                    self.assertEqual([r["text"] for r in records if r["kind"] == "note" and "not preloaded" in r["text"]] != [], not preload)

    def test_a_limit(self):
        for name, preload in self.each():
            self.good_data(self.run_one(name, 4, 30, 3, preload=preload, vram="512MiB", SPILL_DEVICE_LIMIT="66MiB"), 4)
            self.assertEqual(self.data(self.checked_records())[:4], [("device", 30)] * 2 + [(self.PLACE[name], 30)] * 2)

    def test_out_of_memory_is_null_and_in_the_log(self):
        for name, preload in self.each():
            self.good_data(self.run_one(name, 5, 24, 3, preload=preload, SPILL_OOM_CHAIN=""), 3)
            records = self.checked_records()
            self.assertEqual([r["bytes"] for r in records if r["kind"] == "oom"], [24 * MIB] * 3 + [1 << 50])
            self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_off(self):
        for name, preload in self.each():
            self.good_data(self.run_one(name, 5, 24, 3, preload=preload, SPILL="0"), 3)
            self.assertFalse(self.log.exists())

    def test_a_free_that_fails_is_made_again(self):
        """PyTorch does not learn of it. Memory of the vendor's pool, and memory that spilled."""
        for name, preload in self.each():
            vendor = "hip" if "hip" in name else "cu"
            for fails in ("hipFreeAsync:1:999", "hipEventRecord:1:999") if vendor == "hip" else ("cuMemFreeAsync:1:999", "cuEventRecord:1:999"):
                with self.subTest(name, preload=preload, fails=fails):
                    self.log.unlink(missing_ok=True)
                    self.good_data(self.run_one(name, 5, 6, 3, preload=preload, vram="24MiB", SPILL_SIM_FAIL=fails), 5)
                    self.assertEqual(set(self.checked_records()[-1]["live"].values()), {0})

    def test_without_pools(self):
        """Plain memory, and freed as such."""
        for name, preload in self.each():
            fail = f"{'hip' if 'hip' in name else 'cu'}MemPoolCreate:1+:801"
            self.good_data(self.run_one(name, 5, 24, 3, preload=preload, SPILL_SIM_FAIL=fail,
                                        SPILL_OOM_CHAIN="host", SPILL_DEVICE_RESERVE="0"), 5)
            records = self.checked_records()
            self.assertEqual([p for p, _ in self.data(records)].count("host") % 3, 0)
            self.assertEqual(set(records[-1]["live"].values()), {0})


if __name__ == "__main__":
    unittest.main(verbosity=2)

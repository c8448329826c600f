"""The main job: an unmodified program that runs out of device memory finishes under libspill.so, by every way in."""
import unittest

import harness
from harness import ALL, CUDA, MIB, Case, program


class MainJob(Case):
    def test_alone_it_runs_out_of_memory(self):
        for name in ALL:
            with self.subTest(name):
                self.assertEqual(self.run_program(program(name), preload=False).returncode, 2)

    def test_with_libspill_it_finishes_and_its_data_is_right(self):
        for name in ALL:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                done = self.run_program(program(name, "--count", "5", "--mib", "300"), vram="1GiB")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("all data right", done.stdout)
                self.check_log(name, done.stderr)

    def check_log(self, name, stderr):
        records = self.checked_records()
        allocs = [r for r in records if r["kind"] == "alloc"]
        # Five, then three again after the frees: each decision is there, and the device was filled before anything spilled.
        data = [r for r in allocs if r["bytes"] == 300 * MIB]
        self.assertEqual(len(data), 8)
        self.assertEqual([r["place"] for r in data[:3]], ["device"] * 3)
        spilled = [r for r in data if r["place"] != "device"]
        self.assertTrue(spilled)
        for record in spilled:
            self.assertEqual(record["reason"], "oom")
            self.assertEqual(record["rule"], "default")
            self.assertEqual(record["tried"][0]["place"], "device")
            self.assertIn("MEMORY", record["tried"][0]["error"].upper())
            self.assertEqual(record["place"], "host" if name == "prog_hip" else "split")
        # One loud line, and nothing else.
        lines = stderr.splitlines()
        self.assertEqual(len(lines), 1, stderr)
        self.assertRegex(lines[0], r"^spill: prog_\w+: [\d.]+ MiB of 300.00 MiB placed in host memory \(device 0 full, "
                                   r"rule default\); expect lower speed; log .*log\.jsonl$")
        # One question about what is no allocation of size 0 and one beyond any device surfaced.
        self.assertEqual(sum(r["kind"] == "oom" for r in records), 1)

    def test_hits_tell_the_way_in(self):
        ways = {"prog_runtime": ("cuMemAlloc_v2", "proc"), "prog_runtime_static": ("cuMemAlloc_v2", "proc"),
                "prog_driver_link": ("cuMemAlloc_v2", "link"), "prog_driver_dlsym": ("cuMemAlloc_v2", "dlsym"),
                "prog_driver_proc1": ("cuMemAlloc_v2", "proc"), "prog_driver_proc2": ("cuMemAlloc_v2", "proc"),
                "prog_hip": ("hipMalloc", "link")}
        for name, (symbol, way) in ways.items():
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                self.run_program(program(name, "--count", "1", "--mib", "4"))
                hits = {(h["symbol"], h["way"]): h["count"] for h in self.records()[-1]["hits"]}
                self.assertGreaterEqual(hits[symbol, way], 3)

    def test_the_runtime_is_named_with_its_caller(self):
        self.run_program(program("prog_runtime", "--count", "1", "--mib", "4"))
        record = [r for r in self.records() if r["kind"] == "alloc" and r["bytes"] == 4 * MIB][0]
        self.assertEqual(record["api"], "cudaMalloc")
        self.assertTrue(record["caller"].startswith("prog_runtime+0x"), record["caller"])


class SameWithoutChoice(Case):
    """What is off, or only observes, changes no result, error or last error, with room and without."""

    def same(self, name, vram, arguments, **variables):
        alone = self.run_program(program(name, *arguments), preload=False, vram=vram)
        with_it = self.run_program(program(name, *arguments), vram=vram, **variables)
        self.assertEqual(with_it.returncode, alone.returncode)
        self.assertEqual(with_it.stdout, alone.stdout)
        self.assertEqual(with_it.stderr, alone.stderr)

    def test_off(self):
        for name in ALL:
            for vram in ("64MiB", "256MiB"):
                with self.subTest(name, vram=vram):
                    self.same(name, vram, [], SPILL="0")
                    self.assertFalse(self.log.exists())

    def test_observe(self):
        for name in ALL:
            for vram in ("64MiB", "256MiB"):
                with self.subTest(name, vram=vram):
                    self.same(name, vram, [], SPILL_MODE="observe")
                    self.assertTrue(self.log.exists())

    def test_observe_on_a_full_device_says_what_it_would_do(self):
        self.same("prog_runtime", "64MiB", [], SPILL_MODE="observe", SPILL_OOM_CHAIN="host")
        ooms = [r for r in self.records() if r["kind"] == "oom"]
        self.assertEqual({(r["bytes"], r["would"], r["refused_by"]) for r in ooms}, {(20 * MIB, "host", "driver")})

    def test_observe_beyond_a_limit_says_what_it_would_do(self):
        for name in CUDA:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                self.same(name, "256MiB", [], SPILL_MODE="observe", SPILL_DEVICE_LIMIT="50MiB")
                would = [r for r in self.records() if r.get("would")]
                self.assertEqual({r["kind"] for r in would}, {"alloc", "oom"})
                self.assertEqual({r["place"] for r in would if r["kind"] == "alloc"}, {"device"})
                self.assertEqual({r["would"] for r in would}, {"split"})

    def test_spilling_with_room_is_the_same_too(self):
        for name in ALL:
            with self.subTest(name):
                self.same(name, "256MiB", [])

    def test_nothing_spills_that_the_driver_can_serve(self):
        self.run_program(program("prog_runtime"), vram="256MiB")
        self.assertEqual({r["place"] for r in self.records() if r["kind"] == "alloc" and r["bytes"] > MIB}, {"device"})


class LooksLikeDeviceMemory(Case):
    """The answers about spilled memory are those about plain device memory: the whole output is the same."""

    def test_same_answers(self):
        for name in ALL:
            for chain in ("split", "managed", "host") if name in CUDA else ("host",):
                with self.subTest(name, chain=chain):
                    alone = self.run_program(program(name, "--count", "3", "--mib", "20"), preload=False)
                    spilled = self.run_program(program(name, "--count", "3", "--mib", "20"), SPILL_OOM_CHAIN=chain,
                                               SPILL_DEVICE_LIMIT="30MiB")
                    self.assertEqual(spilled.stdout, alone.stdout)
                    places = [r["place"] for r in self.records() if r["kind"] == "alloc" and r["bytes"] == 20 * MIB]
                    self.assertIn(chain, places)
                    self.log.unlink()


if __name__ == "__main__":
    unittest.main(verbosity=2)

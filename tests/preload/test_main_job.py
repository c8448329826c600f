"""The main job: an unmodified program that runs out of device memory finishes under libspill.so, by every way in."""
import os
import pathlib
import unittest

import harness
from harness import ALL, CUDA, MIB, SMALL, Case, apart, before_end, held, in_order, program


class MainJob(Case):
    vram = SMALL

    def test_alone_it_runs_out_of_memory(self):
        for name in ALL:
            with self.subTest(name):
                self.assertEqual(self.run_program(program(name), preload=False).returncode, 2)

    # A simulated kernel takes longer than a move waits for one, and what is on the host stays there (harness.py): which allocation
    # moves for which is looked at here.
    WAIT = {"SPILL_MOVABLE_WAIT": "60s"}

    def test_with_libspill_it_finishes_and_its_data_is_right(self):
        """Otherwise by the default policy, where a buffer is two chunks and 22 MiB of a third."""
        for name in ("prog_runtime", "prog_hip"):
            with self.subTest(name):
                self.finishes(name, (150, 64, 22), "512MiB", **self.WAIT)

    def test_by_every_way_in(self):
        """The same in small: an eighth of the device, its chunks and its reserve."""
        for name in ALL + ["prog_hip_7"]:
            with self.subTest(name):
                self.finishes(name, (18, 8, 2), "60MiB", SPILL_MOVABLE_CHUNK="8MiB", SPILL_DEVICE_RESERVE="8MiB",
                              **self.WAIT)

    def finishes(self, name, sizes, vram, **variables):
        """`sizes`, in MiB: of a buffer, a chunk, and the last chunk of a buffer."""
        self.log.unlink(missing_ok=True)
        if name == "prog_hip_7":
            variables["LD_LIBRARY_PATH"] = harness.of_release(7)
        done = self.run_program(program(name, "--count", "5", "--mib", str(sizes[0])), vram=vram, **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all data right", done.stdout)
        records = self.checked_records()
        # Five, then three again after the frees: each decision is there.
        data = [r for r in records if r["kind"] == "alloc" and r["bytes"] == sizes[0] * MIB]
        self.assertEqual(len(data), 8)
        if name in ("prog_hip", "prog_hip_7"):
            self.check_placed(data, sizes, done.stderr, "host" if name == "prog_hip" else "split")
        else:
            self.check_moved(data, sizes, records, done.stderr)
        # One question about what is no allocation of size 0 and one beyond any device surfaced, for which nothing moves.
        oom, = [r for r in records if r["kind"] == "oom"]
        self.assertEqual([r for r in records if r["kind"] == "move" and r["what"] == "demote" and
                          r["t"] > data[7]["t"] and r["t"] <= oom["t"] and r["reason"] == "oom"], [])

    def test_what_is_used_may_come_back(self):
        """The same with the default of movable.follow. What moves then depends on the times that were measured: not so what comes out."""
        for name in ALL:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                done = self.run_program(program(name), SPILL_MOVABLE_CHUNK="2MiB", SPILL_DEVICE_RESERVE="0",
                                        SPILL_MOVABLE_FOLLOW="auto", **self.WAIT)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("all data right", done.stdout)
                data = [r for r in self.checked_records() if r["kind"] == "alloc" and r["bytes"] == 6 * MIB]
                self.assertEqual(len(data), 8)
                first, *growth = apart(before_end(done.stderr))[0].splitlines()
                self.assertIn("; expect lower speed; log ", first)
                self.assertLessEqual(len(growth), 3, done.stderr)
                self.assertTrue(all(" when last told); " in line for line in growth), done.stderr)

    def loud(self, stderr, what):
        """One loud line, and nothing else but the block about the out of memory that surfaced."""
        rest, blocks = apart(before_end(stderr))
        lines = rest.splitlines()
        self.assertEqual((len(lines), len(blocks)), (1, 1), stderr)
        self.assertRegex(lines[0], rf"^spill: prog_\w+: {what}; expect lower speed; log .*log\.jsonl$")

    def check_moved(self, data, sizes, records, stderr):
        """The older make way, each from its tail: the newest are on the device, which keeps its reserve free."""
        self.assertEqual([r["place"] for r in data], ["device"] + ["movable"] * 7)
        self.assertEqual({(r["reason"], r.get("host_bytes", 0)) for r in data}, {("fits", 0)})
        asked = {"reason": "oom", "api": data[0]["api"], "what": "demote"}
        moves = [r for r in in_order(records) if r["kind"] == "move"]
        # A little less than the reserve is left behind the third, so that its chunks and the last one of the next make way.
        whole, chunk, last = sizes
        fourth, fifth = [move for move in moves if data[2]["order"] < move["order"] < data[3]["order"]], [
            move for move in moves if data[3]["order"] < move["order"] < data[4]["order"]]
        self.assertEqual([{name: move[name] for name in asked} for move in fourth + fifth], [asked] * 4)
        self.assertEqual([(move["seq"], move["bytes"] // MIB) for move in fourth],
                         [(data[1]["seq"], whole), (data[2]["seq"], last)])
        self.assertEqual([(move["seq"], move["bytes"] // MIB) for move in fifth],
                         [(data[2]["seq"], 2 * chunk), (data[3]["seq"], last)])
        # There is no room for any of them before something is freed.
        frees = [r["order"] for r in records if r["kind"] == "free"]
        self.assertEqual([move for move in moves if move["order"] < min(frees)], fourth + fifth)
        self.loud(stderr, rf"{whole}.00 MiB of {whole}.00 MiB moved to host memory to make room \(device 0 full\)")

    def check_placed(self, data, sizes, stderr, place):
        """Where nothing can move: the device was filled before anything spilled."""
        self.assertEqual([r["place"] for r in data[:3]], ["device"] * 3)
        spilled = [r for r in data if r["place"] != "device"]
        self.assertTrue(spilled)
        for record in spilled:
            self.assertEqual((record["reason"], record["rule"], record["place"]), ("oom", "default", place))
            self.assertEqual(record["tried"][0]["place"], "device")
            # The last gets none of what HIP programs free: the reserve is kept by then.
            error = record["tried"][0]["error"]
            self.assertTrue("MEMORY" in error.upper() or error == "device.reserve", error)
        self.loud(stderr, rf"[\d.]+ MiB of {sizes[0]}.00 MiB placed in host memory \(device 0 full, rule default\)")

    def test_without_movable_memory_it_is_placed(self):
        for name in CUDA:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                done = self.run_program(program(name), SPILL_MOVABLE_ENABLE="off", SPILL_DEVICE_RESERVE="0")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("all data right", done.stdout)
                data = [r for r in self.checked_records() if r["kind"] == "alloc" and r["bytes"] == 6 * MIB]
                self.assertEqual([r["place"] for r in data[:5]], ["device"] * 3 + ["split"] * 2)
                self.assertEqual([held(r)["device"] // MIB for r in data[:5]], [6, 6, 6, 2, 0])
                spilled = [r for r in data if r["place"] != "device"]
                self.assertEqual({(r["reason"], r["rule"]) for r in spilled}, {("oom", "default")})
                self.loud(done.stderr, r"4.00 MiB of 6.00 MiB placed in host memory \(device 0 full, rule default\)")

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

    def test_the_start_names_the_process(self):
        command = program("prog_runtime", "--count", "1", "--mib", "4")
        self.run_program(command)
        start = self.checked_records()[0]
        self.assertEqual((start["kind"], start["program"], start["exe"]), ("start", "prog_runtime", os.path.realpath(command[0])))
        self.assertEqual(start["ppid"], os.getpid())

    def test_a_caller_has_its_file_and_its_function(self):
        command = program("prog_runtime", "--count", "1", "--mib", "4")
        self.run_program(command)
        records = self.checked_records()
        record = [r for r in records if r["kind"] == "alloc" and r["bytes"] == 4 * MIB][0]
        file, = self.files()
        self.assertEqual((file["name"], file["path"]), ("prog_runtime", os.path.realpath(command[0])))
        self.assertIn(bytes.fromhex(file["build_id"]), pathlib.Path(command[0]).read_bytes())
        self.assertIn({"caller": record["caller"], "function": "alloc"}, self.reported()["functions"])


class SameWithoutChoice(Case):
    """What is off, or only observes, changes no result, error or last error, with room and without."""

    def same(self, name, vram, arguments, **variables):
        alone = self.run_program(program(name, *arguments), preload=False, vram=vram)
        with_it = self.run_program(program(name, *arguments), vram=vram, **variables)
        self.assertEqual(with_it.returncode, alone.returncode)
        self.assertEqual(with_it.stdout, alone.stdout)
        rest, blocks = apart(with_it.stderr)
        surfaced = self.log.exists() and any(record["kind"] == "oom" for record in self.records())
        self.assertEqual((rest, len(blocks)), (alone.stderr, int(surfaced)))

    def test_off(self):
        for name in ALL:
            for vram in (SMALL, "80MiB"):
                with self.subTest(name, vram=vram):
                    self.same(name, vram, [], SPILL="0")
                    self.assertFalse(self.log.exists())

    def test_observe(self):
        for name in ALL:
            for vram in (SMALL, "80MiB"):
                with self.subTest(name, vram=vram):
                    self.same(name, vram, [], SPILL_MODE="observe")
                    self.assertTrue(self.log.exists())

    def test_observe_on_a_full_device_says_what_it_would_do(self):
        self.same("prog_runtime", SMALL, [], SPILL_MODE="observe", SPILL_OOM_CHAIN="host")
        ooms = [r for r in self.records() if r["kind"] == "oom"]
        self.assertEqual({(r["bytes"], r["would"], r["refused_by"]) for r in ooms}, {(6 * MIB, "host", "driver")})

    def test_observe_beyond_a_limit_says_what_it_would_do(self):
        for name in CUDA:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                self.same(name, "80MiB", [], SPILL_MODE="observe", SPILL_DEVICE_LIMIT="15MiB")
                would = [r for r in self.records() if r.get("would")]
                self.assertEqual({r["kind"] for r in would}, {"alloc", "oom"})
                self.assertEqual({r["place"] for r in would if r["kind"] == "alloc"}, {"device"})
                self.assertEqual({r["would"] for r in would}, {"split"})

    def test_spilling_with_room_is_the_same_too(self):
        for name in ALL:
            with self.subTest(name):
                self.same(name, "80MiB", [])

    def test_nothing_spills_that_the_driver_can_serve(self):
        self.run_program(program("prog_runtime"), vram="80MiB")
        self.assertEqual({r["place"] for r in self.records() if r["kind"] == "alloc" and r["bytes"] > MIB}, {"device"})


class LooksLikeDeviceMemory(Case):
    """The answers about spilled memory are those about plain device memory: the whole output is the same."""

    vram = SMALL

    def test_same_answers(self):
        for name in ALL:
            for chain in ("split", "managed", "host") if name in CUDA else ("host",):
                with self.subTest(name, chain=chain):
                    alone = self.run_program(program(name, "--count", "3", "--mib", "6"), preload=False)
                    spilled = self.run_program(program(name, "--count", "3", "--mib", "6"), SPILL_OOM_CHAIN=chain,
                                               SPILL_DEVICE_LIMIT="9MiB")
                    self.assertEqual(spilled.stdout, alone.stdout)
                    places = [r["place"] for r in self.records() if r["kind"] == "alloc" and r["bytes"] == 6 * MIB]
                    self.assertIn(chain, places)
                    self.log.unlink()

    def test_same_answers_about_what_has_moved(self):
        for name in CUDA:
            with self.subTest(name):
                alone = self.run_program(program(name, "--count", "3", "--mib", "6"), preload=False)
                moved = self.run_program(program(name, "--count", "3", "--mib", "6"), SPILL_MOVABLE_ENABLE="on",
                                         SPILL_DEVICE_LIMIT="9MiB", SPILL_DEVICE_RESERVE="0", SPILL_MOVABLE_CHUNK="2MiB",
                                         SPILL_MOVABLE_WAIT="60s")
                self.assertEqual(moved.stdout, alone.stdout)
                data = [r for r in self.checked_records() if r["kind"] == "alloc" and r["bytes"] == 6 * MIB]
                self.assertEqual({r["place"] for r in data}, {"movable"})
                # Half of the first for the second, the rest and half of the second for the third.
                moves = [r for r in self.records() if r["kind"] == "move"]
                self.assertEqual([(m["seq"] - data[0]["seq"], m["what"], m["bytes"] // MIB) for m in moves[:3]],
                                 [(0, "demote", 4), (0, "demote", 2), (1, "demote", 4)])
                self.log.unlink()


if __name__ == "__main__":
    unittest.main(verbosity=2)

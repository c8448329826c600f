"""The program's own physical memory: pools that grow by cuMemCreate get host memory instead of an error, and
the log follows the life of each piece to its real end. vmm.c is the program; the device has 64 MiB."""
import os
import unittest

from harness import LIBRARY, MIB, PROGRAMS, of_release
from vmm_case import INVALID, OOM, VmmCase

# Two pieces of 24 MiB fit, a third does not.
THREE = "create:a:24m map:a create:b:24m map:b create:c:24m map:c"


class Vmm(VmmCase):
    movable = "off"

    def result(self, done, word):
        """What the last such word printed."""
        return self.results(done, word)[-1]

    def live(self):
        """What the log says is left of physical memory: device bytes, host bytes. The exit line's sums are checked."""
        left = {record["seq"]: record for record in self.kinds("alloc") if record["api"] == "cuMemCreate"}
        for record in self.kinds("free"):
            left.pop(record["seq"], None)
        return [sum(record.get(f"{kind}_bytes", 0) for record in left.values()) for kind in ("device", "host")]


class Pools(Vmm):
    POOL = "pool:a:8m:12 fill:a verify:a"

    def test_a_growing_pool_outgrows_the_device(self):
        """llama.cpp's: 32 GiB of addresses, each piece created, mapped and released at once."""
        alone = self.program(self.POOL, preload=False)
        self.assertEqual(self.result(alone, "pool:a:8m:12"), OOM)
        done = self.good(self.POOL)
        self.assertIn("placed in host memory", done.stderr)
        places = self.places()
        self.assertEqual(places, ["device"] * (len(places) - places.count("host")) + ["host"] * places.count("host"))
        self.assertGreaterEqual(places.count("device"), 5)
        self.assertEqual(len(places), 12)
        # The program ends with all of it mapped and no handle: it is live in the last line.
        self.assertEqual(self.live(), [places.count("device") * 8 * MIB, places.count("host") * 8 * MIB])
        self.assertEqual(self.kinds("free"), [])

    def test_a_pool_is_given_back_by_one_unmap(self):
        self.good(self.POOL + " unmap:a pool:a:8m:12 fill:a verify:a unmap:a")
        self.assertEqual(self.live(), [0, 0])
        self.assertEqual({record["api"] for record in self.kinds("free")}, {"cuMemUnmap"})
        self.assertEqual(len(self.kinds("free")), 24)

    def test_segments_that_are_mapped_and_unmapped(self):
        """PyTorch's: the handle is kept, the mapping comes and goes, then the handle is released."""
        fill = " ".join(f"fill:{name} verify:{name}" for name in "abc")
        again = "unmap:c map:c fill:c verify:c"
        end = " ".join(f"unmap:{name} release:{name}" for name in "abc")
        self.good(f"{THREE} {fill} {again} {end} {THREE} {fill} {end}")
        self.assertEqual(self.places(), ["device", "device", "host"] * 2)
        self.assertEqual({record["api"] for record in self.kinds("free")}, {"cuMemRelease"})
        self.assertEqual(self.live(), [0, 0])

    def test_on_the_device_again_when_there_is_room(self):
        self.good(f"{THREE} unmap:a release:a create:d:24m map:d fill:d verify:d fill:c verify:c")
        self.assertEqual(self.places(), ["device", "device", "host", "device"])
        self.assertEqual(self.live(), [48 * MIB, 24 * MIB])

    def test_a_retained_handle_keeps_it(self):
        self.good(f"{THREE} release:c retain:c unmap:c create:d:24m release:c")
        lines = [(record["kind"], record.get("place")) for record in self.checked_records()
                 if record["kind"] in ("alloc", "free")]
        self.assertEqual(lines[2:], [("alloc", "host"), ("alloc", "host"), ("free", "host")])

    def test_what_is_unmapped_first_lives_by_its_handle(self):
        self.good("create:a:24m map:a unmap:a create:b:24m")
        self.assertEqual(self.live(), [48 * MIB, 0])
        self.assertEqual(self.kinds("free"), [])


class Limits(Vmm):
    def test_device_limit(self):
        self.good("pool:a:8m:5 fill:a verify:a", SPILL_DEVICE_LIMIT="24MiB")
        self.assertEqual(self.places(), ["device"] * 3 + ["host"] * 2)
        self.assertEqual([record["reason"] for record in self.kinds("alloc") if record["api"] == "cuMemCreate"],
                         ["fits"] * 3 + ["limit"] * 2)

    def test_the_limit_is_of_the_device_that_is_named(self):
        words = "create:a:24m device:1 create:b:24m create:c:24m release:b release:c create:d:24m"
        self.good(words, SPILL_SIM_DEVICES="2", SPILL_DEVICE_1_LIMIT="50%", SPILL_DEVICE_LIMIT="none")
        allocs = [(record["dev"], record["place"]) for record in self.kinds("alloc")]
        self.assertEqual(allocs, [(0, "device"), (1, "device"), (1, "host"), (1, "device")])

    def test_the_figures_are_of_the_device_that_is_named(self):
        for context, least, most in (("", 0, 0), ("context:1 ", MIB, 16 * MIB)):
            self.log.unlink(missing_ok=True)
            self.program(f"{context}device:1 create:a:24m create:b:24m create:c:24m", SPILL_SIM_DEVICES="2",
                         SPILL_OOM_CHAIN="")
            (oom,) = self.kinds("oom")
            self.assertEqual((oom["dev"], oom["total"]), (1, 64 * MIB))
            self.assertTrue(least <= oom["free"] <= most, oom)

    def test_an_error_that_is_no_lack_of_memory_stays(self):
        for size, device, error in (("3m", "0", INVALID), ("24m", "5", "CUDA_ERROR_INVALID_DEVICE")):
            for limit in ("none", "1MiB"):
                words = f"device:{device} create:a:{size}"
                alone = self.program(words, preload=False)
                done = self.program(words, SPILL_DEVICE_LIMIT=limit)
                self.assertEqual(done.stdout, alone.stdout)
                self.assertEqual(self.result(done, f"create:a:{size}"), error)

    def test_what_has_no_place_is_out_of_memory(self):
        for chain, tried in (("", []), ("managed", [("managed", "not for physical memory")]),
                             ("split, host", [("split", "host.limit"), ("host", "host.limit")])):
            self.log.unlink(missing_ok=True)
            done = self.program(THREE, SPILL_OOM_CHAIN=chain, SPILL_HOST_LIMIT="8MiB")
            self.assertEqual(self.result(done, "create:c:24m"), OOM)
            (oom,) = self.kinds("oom")
            self.assertEqual([(attempt["place"], attempt["error"]) for attempt in oom["tried"][1:]], tried)
            self.assertEqual((oom["api"], oom["bytes"]), ("cuMemCreate", 24 * MIB))
            self.assertEqual(self.live(), [48 * MIB, 0])

    def test_host_memory_that_is_kept_gives_way(self):
        """A shared chunk that is empty holds 8 MiB of 12: it goes before a handle is refused for host.limit."""
        self.good("create:a:24m create:b:24m create:z:16m brief:1m create:c:8m release:c release:z release:b release:a",
                  SPILL_OOM_CHAIN="split", SPILL_HOST_LIMIT="12MiB")
        self.assertEqual(self.live(), [0, 0])

    def test_a_driver_without_host_handles(self):
        done = self.program(THREE, SPILL_OOM_CHAIN="host", SPILL_SIM_CAPS="nohostvmm")
        self.assertEqual(self.result(done, "create:c:24m"), OOM)
        self.assertEqual(self.kinds("oom")[0]["tried"][1]["error"], "CUDA_ERROR_NOT_SUPPORTED")


class LooksTheSame(Vmm):
    WORDS = THREE + " same:a same:b same:c export:c free:c release:a same:a unmap:a retain:b release:b"

    def test_what_passes_through(self):
        """Off, observing, or with room for all: each answer is what it is without the library."""
        for variables in ({"SPILL": "0"}, {"SPILL_MODE": "observe"}, {"vram": "256MiB"}):
            vram = {key: value for key, value in variables.items() if key == "vram"}
            alone = self.program(self.WORDS, preload=False, **vram)
            done = self.program(self.WORDS, **variables)
            self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout), variables)
            if "SPILL" in variables:
                self.assertFalse(self.log.exists())
        self.assertIn("ERROR", alone.stdout)  # the export is one

    def test_observe_says_what_it_would_do(self):
        done = self.program(THREE, SPILL_MODE="observe")
        self.assertEqual(self.result(done, "create:c:24m"), OOM)
        self.assertEqual(self.kinds("oom")[0]["would"], "split")

    def test_host_memory_answers_as_the_device_memory_it_stands_for(self):
        words = "create:a:24m map:a same:a retain:a"
        alone = self.program(words, preload=False)
        done = self.good("pool:z:8m:6 " + words)
        self.assertEqual(self.places()[-1], "host")
        self.assertIn("type 0 2 ordinal 0 host 1", alone.stdout)
        self.assertEqual(done.stdout.splitlines()[2:], alone.stdout.splitlines()[1:])

    def test_properties_are_those_of_the_named_device(self):
        done = self.good("device:1 create:a:24m map:a same:a", SPILL_SIM_DEVICES="2", SPILL_DEVICE_LIMIT="8MiB")
        self.assertEqual(self.places(), ["host"])
        self.assertIn("location 1 1 ", done.stdout)
        self.assertIn("ordinal 1 ", done.stdout)

    def test_an_export_is_refused_with_a_note(self):
        done = self.program(THREE + " export:a export:c")
        alone = self.program("create:a:24m export:a", preload=False)
        self.assertIn("ERROR", self.result(alone, "export:a"))
        self.assertEqual(self.result(done, "export:c"), self.result(alone, "export:a"))
        (note,) = [record for record in self.kinds("note") if record["code"] == "export"]
        self.assertIn("oom.chain", note["text"])
        self.log.unlink()
        self.program(THREE + " export:a")
        self.assertEqual([record for record in self.kinds("note") if record["code"] == "export"], [])

    def test_what_the_program_may_export_can_be_exported_from_the_host(self):
        """As NCCL's buffers, which it hands to its other ranks."""
        done = self.good(f"exports:1 {THREE} fill:c export:a export:c verify:c")
        self.assertEqual(self.places()[-1], "host", done.stdout)
        self.assertEqual([record for record in self.kinds("note") if record["code"] == "export"], [])

    def test_a_handle_is_no_address(self):
        done = self.program(THREE + " free:a free:c fill:c verify:c")
        self.assertEqual((self.result(done, "free:a"), self.result(done, "free:c")), (INVALID, INVALID))
        self.assertEqual(self.kinds("free"), [])

    def test_no_handle_of_ours_is_handed_out(self):
        words = "pool:a:8m:6 plain:24m"
        alone = self.program("plain:24m", preload=False)
        done = self.program(words, SPILL_OOM_CHAIN="split")
        self.assertEqual(self.kinds("alloc")[-1]["place"], "split")
        self.assertEqual(self.result(done, "plain:24m"), INVALID)
        self.assertEqual(done.stdout.splitlines()[2:], alone.stdout.splitlines()[1:])


class Failures(Vmm):
    def test_each_call_of_the_driver_fails_in_turn(self):
        """The program sees the driver's error and repeats the call; nothing is lost, and nothing is left at the end."""
        calls = ("cuMemCreate", 6), ("cuMemMap", 3), ("cuMemUnmap", 3), ("cuMemRelease", 3), \
            ("cuMemRetainAllocationHandle", 1)
        for function, count in calls:
            for nth in range(1, count + 1):
                with self.subTest(function=function, nth=nth):
                    self.log.unlink(missing_ok=True)
                    self.once(f"{function}:{nth}:999")

    def once(self, fail):
        words = f"{THREE} unmap:a release:a unmap:b release:b release:c retain:c unmap:c release:c".split()
        done = self.program(" ".join(words), SPILL_SIM_FAIL=fail)
        failed = [at for at, line in enumerate(done.stdout.splitlines()[1:]) if "UNKNOWN" in line]
        self.checked_records()
        if failed:  # else one of our own calls: the next step of the chain has served
            self.log.unlink()
            words.insert(failed[0], words[failed[0]])
            done = self.program(" ".join(words), SPILL_SIM_FAIL=fail)
            self.assertEqual(done.stdout.count("ERROR"), 1, done.stdout)
        self.assertEqual(self.live(), [0, 0], done.stdout)


class Hip(Vmm):
    """Behind a handle can be host memory from ROCm 7.2 on; before it, an honest out of memory."""

    def release(self, release, **variables):
        return self.run_program([str(PROGRAMS / f"vmm_hip_{release}")], **variables,
                                **({} if release == 5 else {"LD_LIBRARY_PATH": of_release(release)}))

    def test_the_same_answers_where_there_is_no_such_memory(self):
        for release in 5, 6:
            with self.subTest(release=release):
                self.log.unlink(missing_ok=True)
                alone = self.release(release, preload=False)
                self.assertIn("create 2\nhandle is untouched\nlast error 2\nlast error 0\n", alone.stdout)
                done = self.release(release)
                self.assertEqual((done.returncode, done.stdout), (0, alone.stdout))
                (oom,) = self.kinds("oom")
                self.assertIn("not supported by the device", [attempt["error"] for attempt in oom["tried"]])
                kinds = [record["kind"] for record in self.records() if record["kind"] in ("alloc", "free")]
                self.assertEqual(kinds, ["alloc", "alloc", "free"])  # the second is still mapped

    def test_a_limit(self):
        for release in 5, 6:
            done = self.release(release, SPILL_DEVICE_LIMIT="24MiB")
            self.assertEqual(done.stdout.count("create 2\nhandle is untouched\nlast error 2\n"), 2, done.stdout)

    def test_host_memory_behind_a_handle(self):
        alone = self.release(7, preload=False)
        self.assertIn("create 2\n", alone.stdout)
        done = self.release(7)
        self.assertIn("placed in host memory", done.stderr)
        self.assertEqual(done.stdout.count("create 0\nmap 0\naccess 0\nset 0\ncopy 0\n"), 3, done.stdout)
        self.assertIn("wrong bytes 0\n", done.stdout)
        self.assertEqual([record["place"] for record in self.kinds("alloc")], ["device", "device", "host"])


del VmmCase
if __name__ == "__main__":
    assert os.path.exists(LIBRARY)
    unittest.main()

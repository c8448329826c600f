"""The program's own physical memory as chunk sets: it moves, and each answer is that of the driver's handle. vmm.c is the program."""
import unittest

from vmm_case import INVALID, SUCCESS, VmmCase

NOT_SUPPORTED = "CUDA_ERROR_NOT_SUPPORTED"
# 64 MiB in all: two of these fit, and chunks of the first make way for the third.
THREE = "create:a:24m map:a fill:a create:b:24m map:b fill:b create:c:24m map:c fill:c"


class Sets(VmmCase):
    movable = "on"
    usual = {"SPILL_MOVABLE_CHUNK": "4MiB", "SPILL_DEVICE_RESERVE": "0"}

    def program(self, words, *, preload=True, **variables):
        self.log.unlink(missing_ok=True)
        return super().program(words, preload=preload, **variables)

    @staticmethod
    def sides(done, letter):
        return [line.split()[2] for line in done.stdout.splitlines() if line.startswith(f"side {letter} ")]

    def exports(self):
        return [record["text"] for record in self.kinds("note") if record["code"] == "export"]


class Moving(Sets):
    def test_older_ones_make_way(self):
        done = self.good(f"{THREE} side:a side:b side:c verify:a verify:b verify:c")
        self.assertEqual(self.places(), ["movable"] * 3)
        self.assertEqual((self.sides(done, "b"), self.sides(done, "c")), (["d" * 12], ["d" * 12]))
        self.assertIn("h", self.sides(done, "a")[0])
        self.assertTrue(all(move["api"] == "cuMemCreate" for move in self.kinds("move")))

    def test_a_growing_pool(self):
        """llama.cpp's: each piece created, mapped and released at once."""
        self.assertIn("ERROR", self.program("pool:a:8m:12", preload=False).stdout)
        done = self.good("pool:a:8m:12 fill:a verify:a side:a")
        self.assertTrue(self.sides(done, "a")[0].endswith("d" * 12), "the newest are on the device")
        self.assertEqual(set(self.places()), {"movable"})

    def test_it_lives_until_the_last_handle_and_mapping(self):
        done = self.good(f"{THREE} release:a verify:a retain:a unmap:a map:a verify:a side:a release:a unmap:a release:b unmap:b "
                         "release:c unmap:c info")
        self.assertIn("h", self.sides(done, "a")[0], "its chunks stay where they are between two mappings")
        live = self.checked_records()[-1]["live"]
        self.assertEqual(live["device_bytes"], 0)
        self.assertLess(live["host_bytes"], 4096, "the program's own pinned words")
        self.assertEqual(done.stdout.splitlines()[-2], self.program("info", preload=False).stdout.splitlines()[-2])

    def test_unmapped_memory_does_not_move(self):
        done = self.good("create:a:24m map:a fill:a unmap:a create:b:24m map:b fill:b create:c:24m map:c fill:c side:b verify:c map:a "
                         "side:a verify:a verify:b")
        self.assertEqual(self.sides(done, "a"), ["d" * 12])
        self.assertIn("h", self.sides(done, "b")[0])

    def test_with_two_mappings_it_stays(self):
        done = self.good("create:a:24m map:a fill:a twice:a create:b:24m map:b fill:b create:c:24m map:c side:a side:b verify:a verify:b")
        self.assertEqual(self.sides(done, "a"), ["d" * 12])
        self.assertIn("h", self.sides(done, "b")[0])

    def test_from_the_second_mapping_on(self):
        """Before the program has access to it: the mapping must not stay with memory that the set has left."""
        done = self.good("create:a:24m map:a fill:a second:a create:b:24m map:b fill:b create:c:24m map:c side:a verify:a verify:b")
        self.assertEqual(self.sides(done, "a"), ["d" * 12])

    def test_other_devices_keep_access_wherever_it_is(self):
        """As XLA gives all peers access to its pools."""
        done = self.good("create:a:24m map:a share:a:1:3 fill:a there:a create:b:24m map:b fill:b create:c:24m map:c fill:c side:a "
                         "there:a verify:a release:c unmap:c back:a side:a there:a fill:a there:a verify:b", SPILL_SIM_DEVICES=2)
        self.assertIn("h", self.sides(done, "a")[0])
        self.assertEqual(self.sides(done, "a")[1], "d" * 12)
        done = self.program("create:a:24m map:a fill:a there:a", SPILL_SIM_DEVICES=2)
        self.assertNotEqual(self.results(done, "there:a"), [SUCCESS], "without access")

    def test_access_of_a_new_address(self):
        """Who had access to the old mapping has none to the new one."""
        done = self.program("create:a:24m map:a share:a:1:3 fill:a unmap:a map:a create:b:40m map:b fill:b create:c:24m map:c fill:c "
                            "side:a there:a", SPILL_SIM_DEVICES=2)
        self.assertEqual(self.sides(done, "a"), ["h" * 12])
        self.assertNotEqual(self.results(done, "there:a"), [SUCCESS])

    def test_with_read_only_access_it_stays(self):
        done = self.good("create:a:24m map:a fill:a share:a:1:1 there:a create:b:24m map:b fill:b create:c:24m map:c side:a there:a",
                         SPILL_SIM_DEVICES=2)
        self.assertEqual(self.sides(done, "a"), ["d" * 12])

    def test_not_all_of_it_fits(self):
        """Larger than the device: a part of it is on the host from the start."""
        done = self.good("create:a:80m map:a fill:a verify:a side:a")
        self.assertEqual(self.places(), ["split"])
        self.assertRegex(self.sides(done, "a")[0], "^d+h+$")


class Answers(Sets):
    WORDS = f"{THREE} same:a same:b same:c half:a release:a same:a retain:a export:a unmap:a retain:b release:b release:b same:b"

    def test_they_are_the_driver_s(self):
        """Whether the chunks have moved or not. The driver serves all of it only on a larger device."""
        alone = self.program(self.WORDS, preload=False, vram="256MiB")
        for vram in ("256MiB", "64MiB"):
            with self.subTest(vram):
                self.assertEqual(self.program(self.WORDS, vram=vram).stdout, alone.stdout)
                self.assertEqual(set(self.places()), {"movable"})

    def test_sizes_that_the_driver_refuses(self):
        for size in ("3m", "0m"):
            self.assertEqual(self.program(f"create:a:{size}").stdout, self.program(f"create:a:{size}", preload=False).stdout)

    def test_a_stale_handle(self):
        done = self.program("create:a:8m release:a release:a map:a same:a export:a multicast:a")
        for word in ("release:a", "map:a", "export:a", "multicast:a"):
            self.assertEqual(self.results(done, word)[-1], INVALID, done.stdout)

    def test_export_before_it_moves(self):
        """One handle of the driver's, which stays where it is from then on."""
        done = self.good("exports:1 create:a:24m map:a fill:a same:a export:a exports:0 create:b:24m map:b fill:b create:c:24m map:c "
                         "side:a side:b verify:a verify:b")
        self.assertEqual(self.sides(done, "a"), ["d" * 12])
        self.assertIn("h", self.sides(done, "b")[0])
        self.assertEqual(self.exports(), [])

    def test_a_multicast_object_gets_the_driver_s_handle(self):
        for word in ("multicast", "multicast2", "endpoint"):
            with self.subTest(word):
                done = self.program(f"exports:1 create:a:24m {word}:a exports:0 create:b:24m {word}:b")
                self.assertEqual((self.results(done, f"{word}:a"), self.results(done, f"{word}:b")), ([NOT_SUPPORTED], [INVALID]))

    def test_bound_by_address_it_stays(self):
        """The multicast object would keep the memory that the set has left."""
        for word in ("bind", "bind2", "endpointat"):
            with self.subTest(word):
                done = self.program(f"create:a:24m map:a fill:a {word}:a create:b:24m map:b fill:b create:c:24m map:c side:a side:b verify:a verify:b")
                self.assertEqual(self.results(done, f"{word}:a"), [NOT_SUPPORTED])
                self.assertEqual(self.sides(done, "a"), ["d" * 12])
                self.assertIn("h", self.sides(done, "b")[0])

    def test_export_after_it_has_moved(self):
        """Refused, with a note; the next of that call site and size is the driver's own, and its export works."""
        done = self.program(f"exports:1 {THREE} verify:a export:a release:b unmap:b release:c unmap:c create:d:24m map:d export:d")
        self.assertEqual((self.results(done, "export:a"), self.results(done, "export:d")), ([INVALID], [SUCCESS]))
        self.assertEqual(self.places(), ["movable"] * 3 + ["device"])
        self.assertEqual(len(self.exports()), 1)

    def test_export_after_it_has_come_back(self):
        """Its memory is another, that was not made for export."""
        done = self.program(f"exports:1 {THREE} side:a release:b unmap:b release:c unmap:c back:a side:a export:a verify:a")
        self.assertEqual([set(sides) for sides in self.sides(done, "a")], [{"h"}, {"d"}], done.stdout)
        self.assertEqual(self.results(done, "export:a"), [INVALID])
        self.assertEqual(len(self.exports()), 1)

    def test_large_exportable_memory_is_the_driver_s(self):
        self.good("exports:1 create:a:128m map:a fill:a verify:a export:a", vram="256MiB")
        self.assertEqual(self.places(), ["device"])


if __name__ == "__main__":
    unittest.main()

"""Movable memory: what is large and old gives way, tail first, and comes back when there is room. A test a sentence."""
import collections
import os
import re
import shutil
import signal
import subprocess
import time
import json
import unittest

from harness import KERNELS, LIBRARY, MIB, PROGRAMS
from movable_case import OOM, RESERVES, SUCCESS, MovableCase

# 60 of 64 MiB; then 6 MiB are missing for 10.
FULL = "early:a:40m fill:a early:b:20m fill:b"
NEWCOMER = f"{FULL} alloc:c:10m fill:c"
END = "verify:a verify:b verify:c where:a where:b where:c free:a free:b free:c"


class Demotion(MovableCase):
    def test_a_newcomer_gets_the_device(self):
        """With the default chain and `movable.enable = auto`: the tail of the large old one is on host, data is right."""
        alone = self.program(NEWCOMER, preload=False)
        self.assertEqual(self.result(alone, "alloc:c:10m"), OOM)
        done = self.good(f"{NEWCOMER} {END}", SPILL_MOVABLE_ENABLE="auto")
        self.assertEqual(self.where(done, "a"), ["d" * 17 + "h" * 3])
        self.assertEqual((self.where(done, "b"), self.where(done, "c")), (["d" * 10], ["d" * 5]))
        old, _, new = self.allocs()
        self.assertEqual([record["place"] for record in self.allocs()], ["movable"] * 3)
        self.assertEqual(new["device_bytes"], 10 * MIB)
        move, = self.moves()
        self.assertEqual((move["what"], move["seq"], move["reason"], move["api"]), ("demote", old["seq"], "oom", "cuMemAlloc_v2"))
        self.assertEqual((move["bytes"], move["chunks"]), (6 * MIB, 3))
        self.assertEqual((move["device_bytes"], move["host_bytes"]), (34 * MIB, 6 * MIB))

    def test_only_what_is_missing(self):
        # 40 MiB; less than two whole chunks are made of 16 MiB, so that the last one is 8.
        for chunk, moved in (("2MiB", 6), ("4MiB", 8), ("8MiB", 8), ("16MiB", 8), ("64MiB", 8)):
            with self.subTest(chunk):
                self.good(f"{NEWCOMER} {END}", SPILL_MOVABLE_CHUNK=chunk)
                self.assertEqual([move["bytes"] for move in self.moves()], [moved * MIB])

    def test_the_last_chunk_is_as_long_as_it_must_be(self):
        done = self.good(f"early:a:41m fill:a early:b:19m fill:b alloc:c:4m fill:c {END}", SPILL_MOVABLE_CHUNK="16MiB")
        self.assertEqual(self.where(done, "a"), ["d" * 16 + "h" * 5], "41 MiB are 16, 16 and 10")

    def test_the_reserve_is_freed_too(self):
        for reserve in RESERVES:
            with self.subTest(reserve):
                self.good(f"{NEWCOMER} {END}", **{reserve: "8MiB"})
                self.assertEqual(sum(move["bytes"] for move in self.moves()), 14 * MIB)

    def test_the_log_tells_what_others_hold(self):
        """Nobody else has memory of this device. What a request is charged with before the driver serves it is not held yet."""
        words = f"{FULL} alloc:c:10m fill:c take:array:6m:2 take:plain:6m:2 take:created:6m:1"
        self.good(words, SPILL_DEVICE_RESERVE="8MiB", SPILL_MOVABLE_MIN="8MiB", SPILL_SIM_CONTEXT="0")
        seen = [(record["kind"], record["reason"], record["seen"]) for record in self.checked_records() if "seen" in record]
        self.assertLessEqual({("alloc", "fits"), ("move", "oom"), ("move", "reserve")}, {(kind, reason) for kind, reason, _ in seen})
        for kind, reason, figures in seen:
            with self.subTest(kind=kind, reason=reason):
                self.assertEqual(figures["total"] - figures["free"] - figures["ours"], 0, figures)

    def test_a_split_leaves_the_reserve(self):
        for reserve in RESERVES:
            with self.subTest(reserve):
                self.good("early:a:40m fill:a alloc:b:30m fill:b verify:a verify:b", SPILL_MOVABLE_ENABLE="off", **{reserve: "8MiB"})
                split = self.allocs()[1]
                self.assertEqual((split["place"], split["device_bytes"]), ("split", 16 * MIB))

    def test_the_larger_gives_way_before_the_older(self):
        done = self.good(f"early:a:8m fill:a early:b:32m fill:b early:c:20m fill:c alloc:d:8m fill:d verify:d {END}")
        self.assertEqual((self.where(done, "a"), self.where(done, "b")), (["d" * 4], ["d" * 14 + "h" * 2]))

    def test_of_one_size_class_the_oldest(self):
        done = self.good(f"early:a:16m fill:a early:b:24m fill:b early:c:20m fill:c alloc:d:8m fill:d verify:d {END}")
        self.assertEqual((self.where(done, "a"), self.where(done, "b")), (["d" * 6 + "h" * 2], ["d" * 12]))

    def test_what_has_grown_is_dead_and_goes_first(self):
        grown = " ".join(f"alloc:{name}:{size}m fill:{name}" for name, size in zip("bcdef", (4, 6, 9, 13, 19)))
        done = self.good(f"early:a:24m fill:a {grown} verify:a verify:f where:a where:f free:a free:f")
        self.assertEqual((self.where(done, "a"), self.where(done, "f")), (["d" * 12], ["d" * 10]))
        self.assertGreater(len(self.moves()), 0)

    def test_a_pool_grows_on_the_device(self):
        done = self.good("early:a:40m fill:a grow:p:4m:5 fill:p verify:a verify:p grow:p:4m:5 fill:p verify:a verify:p "
                         "where:a where:p free:p free:a")
        self.assertEqual(self.where(done, "p"), ["d" * 20])
        self.assertEqual(self.where(done, "a"), ["d" * 12 + "h" * 8])
        self.assertEqual({(move["reason"], move["api"]) for move in self.moves()}, {("oom", "cuMemCreate")})
        self.assertEqual({record["place"] for record in self.allocs() if record["api"] == "cuMemCreate"}, {"movable"})

    def test_a_limit_makes_room_as_the_driver_does(self):
        done = self.good(f"{NEWCOMER} {END}", SPILL_DEVICE_LIMIT="64MiB", vram="256MiB")
        self.assertEqual(self.where(done, "a"), ["d" * 17 + "h" * 3])
        self.assertEqual({move["reason"] for move in self.moves()}, {"limit"})

    def test_small_memory_in_it_is_right(self):
        """A newcomer that is too small to be movable gets the device as well."""
        done = self.good("early:a:62m fill:a alloc:b:2m fill:b " + " ".join(
            f"alloc:{name}:100k fill:{name}" for name in "cdefg") + " verify:a verify:b verify:c verify:g where:a")
        self.assertIn("h", self.where(done, "a")[0])
        self.assertEqual({record["place"] for record in self.allocs() if record["bytes"] < MIB}, {"device"})


class Promotion(MovableCase):
    def test_it_comes_back_in_later_calls(self):
        done = self.good("early:a:40m fill:a grow:p:4m:10 fill:p where:a free:p back:a where:a verify:a free:a")
        self.assertEqual(self.where(done, "a"), ["d" * 12 + "h" * 8, "d" * 20])
        moves = self.moves("promote")
        self.assertEqual((sum(move["bytes"] for move in moves), {move["reason"] for move in moves}), (16 * MIB, {"free"}))

    def test_the_reserve_stays_free(self):
        for reserve in RESERVES:
            with self.subTest(reserve):
                done = self.good("early:a:60m fill:a grow:p:4m:5 fill:p free:p alloc:x:2m free:x back:b busy:2000 where:a info verify:a",
                                 **{reserve: "8MiB"})
                for line in done.stdout.splitlines():
                    if line.startswith("free "):
                        self.assertGreaterEqual(int(line.split()[1]), 8 * MIB)
                self.assertGreater(len(self.moves("demote")), 0)

    def test_a_program_that_frees_and_asks_again_finds_it_right(self):
        cycle = "grow:p:4m:8 fill:p verify:a free:p back:a verify:a"
        self.good(f"early:a:50m fill:a {cycle} {cycle} {cycle} free:a")
        self.assertGreaterEqual(len(self.moves("demote")), 3)


class Answers(MovableCase):
    def test_one_plain_allocation_on_the_device(self):
        """Pointer attributes and ranges are those of plain memory, also where a part is on host."""
        words = "early:a:40m fill:a alloc:b:40m"
        alone = self.program(f"{words} ask:a ask:b", preload=False, vram="256MiB")
        done = self.good(f"{words} ask:a ask:b where:a")
        self.assertIn("h", self.where(done, "a")[0])
        answers = [[line for line in text.splitlines() if line.startswith("at ")] for text in (alone.stdout, done.stdout)]
        self.assertGreater(len(answers[0]), 60)
        self.assertEqual(*answers)


class Switches(MovableCase):
    usual = MovableCase.usual | {"SPILL_MOVABLE_ENABLE": "auto"}

    def places(self, words="early:a:40m early:b:10m", **variables):
        self.program(words, **variables)
        return [record["place"] for record in self.allocs()]

    def calls(self, preload, words, **variables):
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        self.program(words, preload=preload, SPILL_SIM_TRACE=trace, **variables)
        # Questions that change nothing, and the look-ups that a start makes.
        quiet = re.compile(r"cuCtxGet|cuDeviceGet|cuDeviceTotalMem|cuMemGetInfo|cuGetErrorName|cuGetProcAddress|cuDriverGetVersion|"
                           r"cuDevicePrimaryCtxGetState")
        return collections.Counter(line for line in trace.read_text(encoding="utf-8").split() if not quiet.match(line))

    def test_below_the_share_it_is_the_plain_call(self):
        """The driver sees the same calls as without the library, while less than half of the device is in use."""
        words = "early:a:10m fill:a early:b:10m fill:b verify:a verify:b early:c:10m free:a early:d:10m free:b free:c free:d"
        alone, under = self.calls(False, words), self.calls(True, words)
        self.assertEqual(under - alone, collections.Counter())
        self.assertEqual(alone, under)
        self.assertEqual({record["place"] for record in self.allocs()}, {"device"})

    def test_above_the_share_it_is_movable(self):
        self.assertEqual(self.places("early:a:30m early:b:10m early:c:10m"), ["device", "movable", "movable"])
        self.assertEqual(self.places("early:a:30m early:b:10m early:c:10m", SPILL_MOVABLE_ABOVE="80%"),
                         ["device", "device", "device"])
        self.assertEqual(self.places("early:a:30m early:b:10m", SPILL_MOVABLE_ABOVE="0%"), ["movable", "movable"])

    def test_memory_of_others_counts(self):
        """Another context's plain memory, here taken when the context is made."""
        self.assertEqual(self.places("early:a:10m", SPILL_SIM_CONTEXT="40MiB"), ["movable"])

    def test_the_limit_counts_as_the_device(self):
        self.assertEqual(self.places("early:a:10m early:b:10m", SPILL_DEVICE_LIMIT="24MiB"), ["device", "movable"])

    def test_small_ones_are_plain(self):
        words = "early:a:1m early:b:2m early:c:15m early:d:16m"
        self.assertEqual(self.places(words, SPILL_MOVABLE_ENABLE="on"), ["device", "movable", "movable", "movable"])
        self.assertEqual(self.places(words, SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_MIN="16MiB"),
                         ["device", "device", "device", "movable"])

    def test_off_is_off(self):
        self.assertEqual(self.places("early:a:40m early:b:30m", SPILL_MOVABLE_ENABLE="off"), ["device", "split"])
        self.assertEqual(self.moves(), [])

    def test_on_is_on(self):
        for variables in ({}, {"OMPI_COMM_WORLD_SIZE": "2"}):
            with self.subTest(**variables):
                self.assertEqual(self.places("early:a:4m", SPILL_MOVABLE_ENABLE="on", **variables), ["movable"])

    def test_where_the_device_cannot(self):
        for enable in ("auto", "on"):
            for caps in ("novmm", "nohostvmm"):
                with self.subTest(enable, caps=caps):
                    self.assertEqual(self.places("early:a:40m", SPILL_MOVABLE_ENABLE=enable, SPILL_SIM_CAPS=caps), ["device"])

    def test_observing_changes_nothing(self):
        self.assertEqual(self.places("early:a:40m", SPILL_MODE="observe", SPILL_MOVABLE_ENABLE="on"), ["device"])

    def test_each_reason_against_it_is_a_note(self):
        library = self.folder / "libnvcuvid.so.1"
        shutil.copy(PROGRAMS / "big_pages.so", library)
        for words, variables, word in (
                ("", {"OMPI_COMM_WORLD_SIZE": "4"}, "ranks"), (f"map:{library}", {}, "libnvcuvid")):
            with self.subTest(words, **variables):
                places = self.places(f"{words} early:b:40m early:c:10m", **variables)
                self.assertEqual(places[-2:], ["device", "device"])
                notes = self.notes("movable")
                self.assertEqual(len(notes), 1, notes)
                self.assertIn(word, notes[0])
        for words, variables in (("", {}), ("", {"SPILL_SIM_DEVICES": "2"}), ("", {"WORLD_SIZE": "2"}), ("early:a:10m ipc:a free:a", {})):
            with self.subTest(words, **variables):
                self.assertEqual(self.places(f"{words} early:b:40m early:c:10m", **variables)[-2:], ["movable", "movable"])
                self.assertEqual(self.notes("movable"), [])

    def test_a_library_that_comes_later_ends_all_moves(self):
        library = self.folder / "libnvcuvid.so.1"
        shutil.copy(PROGRAMS / "big_pages.so", library)
        done = self.good(f"{FULL} map:{library} alloc:c:10m fill:c {END}")
        self.assertEqual((self.where(done, "a"), self.moves()), (["d" * 20], []))
        self.assertIn("split", [record["place"] for record in self.allocs()])
        self.assertEqual(len(self.notes("movable")), 1)


class Pinned(MovableCase):
    def test_what_is_exported_stays(self):
        """Its handle in other hands, memory keeps its place for life; the rest still moves."""
        done = self.program("early:a:32m fill:a early:b:16m fill:b retain:a alloc:c:24m fill:c where:a where:b verify:a verify:b verify:c")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if self.result(done, "retain:a") != SUCCESS:
            self.assertEqual((self.result(done, "retain:a"), self.where(done, "b")), ("CUDA_ERROR_INVALID_VALUE", ["d" * 8]))
            return
        self.assertEqual(self.where(done, "a"), ["d" * 16])
        self.assertIn("h", self.where(done, "b")[0])


# 48 of 64 MiB: the last two are above the share.
SIX = " ".join(f"early:{letter}:8m" for letter in "abcdef")


class Exports(MovableCase):
    """What a program hands to other processes is plain: known beforehand by the library that asks, or learned from a refusal."""
    usual = MovableCase.usual | {"SPILL_MOVABLE_ENABLE": "auto"}
    refusal = "CUDA_ERROR_NOT_SUPPORTED"

    def places(self):
        return [record["place"] for record in self.allocs()]

    def test_a_refused_export_teaches(self):
        """The next request of that call site and size is plain, and its export works."""
        for enable in ("auto", "on"):
            with self.subTest(enable=enable):
                done = self.program(f"{SIX} memops:f free:f early:f:9m memops:f", SPILL_MOVABLE_ENABLE=enable)
                self.assertEqual(self.places()[-2:], ["movable", "device"])
                self.assertEqual([result for said, result in self.results(done) if said == "memops:f"], [self.refusal, SUCCESS])
                note, = self.notes("export")
                self.assertIn(self.allocs()[-2]["caller"], note)
                self.assertIn("place = device", note)

    def test_a_legacy_handle_is_served(self):
        """It teaches nothing, and what has one stays where it is."""
        done = self.program(f"{SIX} ipc:f ipc:e alloc:g:16m fill:g where:f where:e free:f early:f:9m")
        self.assertEqual([result for said, result in self.results(done) if said.startswith("ipc")], [SUCCESS] * 2)
        self.assertEqual((self.where(done, "f"), self.places()[-1]), (["dddd"], "movable"))
        self.assertEqual(len(self.notes("export")), 1)
        self.assertIn("hands it to other processes itself", self.notes("export")[0])

    def test_a_legacy_handle_that_cannot_be_served_teaches(self):
        """Descriptors are refused, as on WSL2; or there is no socket, as under some filters."""
        for refused in ("cuMemExportToShareableHandle:1+:801", "cuMemRetainAllocationHandle:1+:801"):
            done = self.program(f"{SIX} ipc:f free:f early:f:9m ipc:f", SPILL_SIM_FAIL=refused)
            self.assertEqual(self.places()[-2:], ["movable", "device"])
            self.assertEqual([result for said, result in self.results(done) if said == "ipc:f"], ["CUDA_ERROR_INVALID_VALUE", SUCCESS])

    def test_it_teaches_about_nothing_else(self):
        """Other sizes and other call sites stay movable, and one note is enough."""
        self.program(f"{SIX} memops:f memops:e free:f free:e early:e:2m early:f:7m alloc:g:8m")
        self.assertEqual(self.places()[-3:], ["movable"] * 3)
        self.assertEqual(len(self.notes("export")), 1)

    def test_each_size_is_learned(self):
        self.program(f"{SIX} early:g:2m memops:f memops:g free:f free:g early:f:8m early:g:2m")
        self.assertEqual(self.places()[-2:], ["device", "device"])

    def test_an_error_of_the_program_teaches_nothing(self):
        """What no memory allows, plain memory neither, says nothing about chunks."""
        done = self.program(f"{SIX} wrong:f free:f early:f:8m")
        self.assertEqual((self.result(done, "wrong:f"), self.places()[-1]), ("CUDA_ERROR_INVALID_VALUE", "movable"))
        self.assertEqual(self.notes("export"), [])

    def test_part_of_a_page_of_64_kib_teaches_nothing(self):
        """The driver exports whole pages of the machine. A range that is none was refused for that, not for its chunks."""
        done = self.program(f"{SIX} free:f early:f:8196k export:f free:f early:f:8196k",
                            LD_PRELOAD=f"{LIBRARY} {PROGRAMS}/big_pages.so")
        self.assertEqual((self.result(done, "export:f"), self.places()[-1]), ("CUDA_ERROR_INVALID_VALUE", "movable"))
        self.assertEqual(self.notes("export"), [])

    def test_a_rule_overrules_what_was_learned(self):
        policy = self.folder / "policy.conf"
        policy.write_text("[rule r]\nplace = movable\n", encoding="utf-8")
        self.program(f"{SIX} memops:f free:f early:f:8m", SPILL_POLICY=policy)
        self.assertEqual(self.places()[-1], "movable")

    def test_a_buffer_for_a_device_driver_may_be_of_many_chunks(self):
        """As long as all of them are on the device. They stay there then; other memory still moves."""
        done = self.good("early:a:32m early:b:10m export:b early:c:14m fill:c alloc:d:12m fill:d where:b where:c verify:c verify:d")
        self.assertEqual(self.places(), ["device", "movable", "movable", "movable"])
        self.assertEqual(self.notes("export") + self.notes("movable"), [])
        self.assertEqual(self.where(done, "b"), ["d" * 5])
        self.assertIn("h", self.where(done, "c")[0])
        done = self.program("early:a:40m alloc:b:40m export:b", SPILL_MOVABLE_ENABLE="off")
        self.assertEqual((self.result(done, "export:b"), self.places()[-1]), ("CUDA_ERROR_INVALID_VALUE", "split"))
        self.assertIn("off the device", *self.notes("export"))

    def library(self, name, words, **variables):
        """The places of what a library of that name asks for."""
        self.log.unlink(missing_ok=True)
        library = self.folder / name
        shutil.copy(PROGRAMS / "libplain_retrier.so", library)
        done = self.run_program([str(PROGRAMS / "retrier"), str(library), *words.split()], **{**self.usual, **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.places()

    def test_where_it_works_on_two_devices_more_is_kept_for_code(self):
        """While its kernels wait for each other nothing can move."""
        words = "on:1 take:a:4 on:0 take:b:40 take:c:20 take:d:20 take:e:4 check:a check:d"
        two = {"SPILL_SIM_DEVICES": "2", "SPILL_DEVICE_RESERVE": "1MiB"}
        self.library("libnccl.so.2", words, **two)
        note, = self.notes("reserve")
        self.assertTrue(note.startswith("device.reserve of device 0 grows to 8.00 MiB: NCCL or its like "), note)
        for name, other in (("libnccl.so.2", words.removeprefix("on:1 ")), ("libother.so.2", words)):
            self.library(name, other, **two)
            self.assertEqual(self.notes("reserve"), [], name)

    def test_a_library_that_exports_gets_plain_memory(self):
        words = "take:a:40 take:b:8 take:c:4 check:a check:b check:c"
        self.assertEqual(self.library("libnccl.so.2", words), ["device"] * 3)
        note, = self.notes("movable")
        self.assertIn("NCCL", note)
        self.assertIn("place = movable", note)
        self.assertEqual(self.library("libother.so.2", words), ["movable"] * 3)
        self.assertEqual(self.notes("movable"), [])
        self.assertEqual(self.library("libnccl.so.2", words, SPILL_MOVABLE_ENABLE="on"), ["movable"] * 3)
        policy = self.folder / "policy.conf"
        policy.write_text("[rule r]\ncaller = libnccl.so*\nplace = movable\n", encoding="utf-8")
        self.assertEqual(self.library("libnccl.so.2", words, SPILL_POLICY=policy), ["movable"] * 3)


class Kill(MovableCase):
    def lines(self):
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return text.split("\n")

    def test_a_killed_program_leaves_a_readable_log(self):
        """Each line but an unfinished last one is a record, and nothing is missing before the last move."""
        storm = PROGRAMS.parent / "storm" / "moving"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LD_LIBRARY_PATH": os.environ["SIM_PATH"],
                       "LD_PRELOAD": LIBRARY, "SPILL_LOG": str(self.log), "SPILL_SIM_VRAM": "128MiB", "SPILL_MOVABLE_WAIT": "300ms",
                       "SPILL_HOST_SHARE": "no", **self.usual}
        for seed, moves in enumerate((1, 10, 40)):
            with self.subTest(moves=moves):
                self.log.unlink(missing_ok=True)
                with subprocess.Popen([storm, KERNELS, str(seed), "120", "128", "24"], env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) as process:
                    while sum('"kind":"move"' in line for line in self.lines()) < moves and process.poll() is None:
                        time.sleep(0.002)
                    process.send_signal(signal.SIGKILL)
                    output = process.stdout.read()
                self.assertEqual(process.returncode, -signal.SIGKILL, output)
                self.readable(moves)

    def readable(self, moves):
        lines = self.lines()
        records = [json.loads(line) for line in lines[:-1]]
        self.assertGreaterEqual([record["kind"] for record in records].count("move"), moves)
        last = max(i for i, record in enumerate(records) if record["kind"] == "move")
        orders = {record["order"] for record in records[:last + 1] if "order" in record}
        # Another thread may have its event and not yet its line: four threads.
        self.assertLessEqual(len(set(range(1, records[last]["order"])) - orders), 4)


del MovableCase
if __name__ == "__main__":
    unittest.main()

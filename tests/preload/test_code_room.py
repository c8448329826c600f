"""
From the first spill of a device on, device.reserve is kept from every kind of request, so that code finds room when it is loaded.
Nothing here can move. Each test but that of the first spill ends in a failed load where the reserve is not kept.
"""
import unittest

from harness import MIB, PROGRAMS
from movable_case import OOM, SUCCESS, MovableCase

RESERVE = 8 * MIB
# With what the driver needs for a block that small requests share, they take less than the reserve together.
ROOM = {"SPILL_SIM_ROOM": "module:1MiB,function:512KiB,stream:1MiB,event:64KiB,exec:1MiB", "SPILL_SIM_CONTEXT": "512KiB"}
LOADS = ("module", "function", "stream", "event", "graph:a", "run", "first:a", "context")
# Words that fill the device until something is spilled, free what an allocator would, and go on.
KINDS = {
    "plain, small": "take:plain:512k:160 give:plain:60 take:plain:512k:100",
    "plain": "take:plain:4m:20 give:plain:6 take:plain:4m:20",
    "plain, large": "take:plain:20m:4 give:plain:2 take:plain:6m:20",
    "pitched": "take:pitched:4m:20 give:pitched:6 take:pitched:4m:20",
    "ordered": "take:ordered:4m:20 give:ordered:14 sync take:ordered:4m:20",
    "created": "take:created:4m:20 give:created:6 take:created:4m:20",
    "array": "take:plain:4m:20 give:plain:6 take:array:4m:20",
    "mixed": "take:plain:4m:10 take:created:4m:10 give:plain:6 take:ordered:4m:2 take:plain:2m:3 take:pitched:2m:9 take:created:2m:9",
}
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "OMPI_COMM_WORLD_SIZE": "2", "RANK": "0"}


class CodeRoom(MovableCase):
    usual = MovableCase.usual | ROOM | {"SPILL_DEVICE_RESERVE": str(RESERVE), "SPILL_MOVABLE_ENABLE": "off"}

    def assert_loads(self, done, loads=LOADS):
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        for word in loads:
            self.assertEqual(self.result(done, word), SUCCESS, f"{word}\n{said}")

    def spills(self, device=0):
        return [record for record in self.allocs() if record["dev"] == device and record["place"] != "device"]

    def loads_find_room(self, words, **variables):
        done = self.program(f"early:a:1m {words} {' '.join(LOADS)} verify:a", **variables)
        self.assert_loads(done)
        self.assertTrue(self.spills())
        self.assertEqual(self.moves(), [])
        return done

    def test_every_kind_leaves_it(self):
        for kind, words in KINDS.items():
            with self.subTest(kind):
                self.loads_find_room(words)

    def test_with_variables_of_several_ranks(self):
        """They keep memory from being movable, as `off` does."""
        self.loads_find_room(KINDS["plain"], SPILL_MOVABLE_ENABLE="auto", **NCCL)

    def test_the_second_device_has_its_own(self):
        """Its context comes later, and device 0 has begun to spill by then."""
        words = "early:a:1m take:plain:4m:20 device:1 alloc:b:1m take:created:4m:20 give:plain:6 give:created:6 take:created:4m:20"
        done = self.program(f"{words} module stream event first:b context", SPILL_SIM_DEVICES=2, SPILL_MOVABLE_ENABLE="auto")
        self.assert_loads(done, ("module", "stream", "event", "first:b", "context"))
        self.assertTrue(self.spills(0))
        self.assertTrue(self.spills(1))

    def test_one_device_s_spill_is_not_the_other_s(self):
        """Device 1 has not spilled: it is filled to the last byte."""
        words = "take:plain:4m:20 device:1 brim:b info"
        alone = self.program("device:1 brim:b info", preload=False, SPILL_SIM_DEVICES=2)
        done = self.program(words, SPILL_SIM_DEVICES=2)
        self.assertTrue(self.spills(0))
        self.assertEqual(self.spills(1), [])
        self.assertEqual(done.stdout.splitlines()[-2:], alone.stdout.splitlines()[-2:])

    def test_until_the_first_spill_nothing_is_kept(self):
        """What fits exactly is the driver's to the last byte, whatever the reserve."""
        for words in ("brim:b info", "take:plain:2m:20 give:plain:9 take:created:2m:9 brim:b info", "take:ordered:2m:27 info"):
            with self.subTest(words):
                alone = self.program(words, preload=False)
                done = self.program(words)
                self.assertEqual(done.stdout, alone.stdout)
                self.assertLess(int(alone.stdout.split("free ")[1].split()[0]), 4 * MIB)
                self.assertEqual(self.spills(), [])

    def test_the_log_says_so(self):
        self.loads_find_room(KINDS["plain"])
        kept = [record for record in self.spills() if {"place": "device", "error": "device.reserve"} in record["tried"]]
        self.assertTrue(kept)

    def test_an_array_is_refused_honestly(self):
        done = self.loads_find_room(KINDS["array"])
        self.assertEqual(self.result(done, "take:array:4m:20"), OOM)
        oom = [record for record in self.checked_records() if record["kind"] == "oom"][-1]
        self.assertEqual((oom["refused_by"], oom["refusal"]["limit"]), ("device.reserve", RESERVE))
        self.assertIn("device.reserve", done.stderr)

    def test_a_reserve_of_nothing_is_not_kept(self):
        """As it was: the device is filled to the last byte, and the load finds no room."""
        words = f"early:a:1m {KINDS['plain']} module"
        done = self.program(words, SPILL_DEVICE_RESERVE="0")
        self.assertEqual(self.result(done, "module"), OOM)
        self.assertEqual([r for r in self.spills() if {"place": "device", "error": "device.reserve"} in r["tried"]], [])

    def test_observing_refuses_nothing(self):
        words = "take:plain:4m:20 give:plain:6 take:plain:2m:20 info"
        alone = self.program(words, preload=False)
        self.assertEqual(self.program(words, SPILL_MODE="observe").stdout, alone.stdout)

    def test_a_capture_leaves_it_alone(self):
        """What is captured may load code at once."""
        done = self.program("early:a:1m take:plain:4m:20 give:plain:6 begin:2 take:plain:4m:12 end module", SPILL_DEVICE_RESERVE="20MiB")
        self.assertEqual({self.result(done, word) for word in ("take:plain:4m:12", "end", "module")}, {SUCCESS})
        self.assertTrue([r for r in self.spills() if {"place": "device", "error": "device.reserve"} in r["tried"]])

    def test_the_caches_of_who_asks_again_fill_it(self):
        """Its out of memory surfaces, it frees its caches, and what it then takes leaves the reserve."""
        words = "early:a:1m take:plain:4m:20 give:plain:6 take:plain:4m:20 take:plain:4m:20"
        done = self.program(f"{words} {' '.join(LOADS)}", SPILL_OOM_HONEST_FIRST="on")
        self.assert_loads(done)
        refused = [record["refused_by"] for record in self.checked_records() if record["kind"] == "oom"]
        self.assertEqual(set(refused), {"oom.honest_first"})

    def test_it_grows_with_what_loads_need(self):
        """The first module takes more than is kept: from then on as much is."""
        room = ROOM | {"SPILL_SIM_ROOM": "module:6MiB"}
        words = "take:plain:4m:20 give:plain:6 take:plain:2m:2 module give:plain:4 take:plain:2m:40"
        done = self.program(f"{words} module info", SPILL_DEVICE_RESERVE="3MiB", **room)
        self.assert_loads(done, ("module",))
        notes = self.notes("reserve")
        self.assertEqual(len(notes), 1)
        self.assertTrue(notes[0].startswith("device.reserve of device 0 grows to 8.00 MiB: cuModuleLoad "), notes)


class NothingToFillItUp(MovableCase):
    """On a card of a real size: where too little can move, the reserve is there when the first spill comes. Nothing is freed here."""
    usual = MovableCase.usual | {"SPILL_SIM_VRAM": "3GiB", "SPILL_SIM_ADDRESSES": "16GiB", "SPILL_DEVICE_RESERVE": "64MiB", "SPILL_MOVABLE_ENABLE": "off",
                                 "SPILL_SIM_ROOM": "module:12MiB,function:4MiB,stream:4MiB", "SPILL_HOST_RESERVE": "64MiB"}
    loads = ("module", "function", "stream", "first:a")

    def fill(self, kind, **variables):
        """All but 12 MiB of the card would be taken. A kernel that finds no room for its code fails for good."""
        return self.program(f"early:a:1m take:{kind}:90m:40 {' '.join(self.loads)} verify:a", **variables)

    def test_every_kind_leaves_it(self):
        for kind in ("plain", "pitched", "ordered", "created"):
            with self.subTest(kind):
                done = self.fill(kind)
                for word in self.loads:
                    self.assertEqual(self.result(done, word), SUCCESS, f"{word}\n{done.stdout}{done.stderr}")
                self.assertTrue([record for record in self.allocs() if record["place"] != "device"])

    def test_a_pool_that_has_memory_in_pieces_only(self):
        """It grows in steps of 32 MiB and has much that nobody uses, none of it in one piece as large as what is asked for."""
        words = ("take:ordered:18m:150", "take:ordered:18m:60 take:ordered:36m:20 take:ordered:27m:60",
                 "take:ordered:18m:100 give:ordered:30 sync take:ordered:36m:40 take:ordered:20m:40",
                 "take:ordered:9m:200 give:ordered:60 sync take:ordered:18m:60", "take:ordered:512k:4000 take:ordered:18m:100")
        for movable in ("off", "auto"):
            for memory in words:
                self.loads_code(memory, movable)
        self.loads_code("take:plain:32m:1 " + words[0], "on")

    def loads_code(self, words, movable):
        with self.subTest(words, movable=movable):
            done = self.program(f"early:a:1m {words} {' '.join(self.loads)} verify:a", SPILL_MOVABLE_ENABLE=movable,
                                SPILL_SIM_ROOM="module:44MiB,function:4MiB,stream:4MiB")
            for word in self.loads:
                self.assertEqual(self.result(done, word), SUCCESS, f"{word}\n{done.stdout}{done.stderr}")

    def test_what_a_pool_freed_without_a_wait(self):
        """The driver does not know yet that the frees are done, so it gives nothing back. Seen on an H200: 3.7 GiB unused, and no stream."""
        streams = " ".join(["stream"] * 40)
        for movable in ("off", "auto", "on"):
            with self.subTest(movable=movable):
                done = self.program(f"early:a:1m take:ordered:30m:96 give:ordered:60 {streams} module first:a", SPILL_MOVABLE_ENABLE=movable)
                self.assertEqual({result for word, result in self.results(done) if word in ("stream", "module", "first:a")}, {SUCCESS})

    def test_a_pool_s_freed_memory_serves_other_requests(self):
        """Before anything is spilled."""
        words = "early:a:1m take:ordered:30m:80 give:ordered:75 take:plain:90m:20"
        alone = self.program(words, preload=False)
        self.assertEqual(self.result(alone, "take:plain:90m:20"), OOM)
        self.program(words)
        self.assertEqual([record for record in self.allocs() if record["place"] != "device"], [])

    def test_where_little_can_move_all_of_it_is_left(self):
        """Demotion of 8 MiB does not fill up the half that requests could take otherwise. Seen on an H200: one workspace of cuBLAS."""
        room = {"SPILL_SIM_ROOM": "module:48MiB", "SPILL_MOVABLE_ENABLE": "on"}
        done = self.program("early:a:1m take:plain:8m:1 take:created:90m:32 take:created:20m:10 module verify:a", **room)
        self.assertEqual(self.result(done, "module"), SUCCESS, f"{done.stdout}{done.stderr}")
        self.assertTrue([record for record in self.allocs() if record["place"] == "movable"])

    def test_without_a_reserve_nothing_is_left(self):
        self.assertEqual(self.result(self.fill("plain", SPILL_DEVICE_RESERVE="0"), "module"), OOM)

    def test_nothing_is_refused_for_it(self):
        """No place takes it, so the driver is asked after all, to the last byte."""
        words = "take:created:90m:33 take:created:70m:5 info"
        alone = self.program(words, preload=False)
        self.assertEqual(self.program(words, SPILL_OOM_CHAIN="").stdout, alone.stdout)

    def test_where_enough_can_move_the_driver_is_asked(self):
        """What moves fills it up when it is needed: until then the card is the program's."""
        words = "take:plain:90m:33 take:ordered:70m:1"
        alone = self.program(words, preload=False)
        self.assertEqual(self.program(words, SPILL_MOVABLE_ENABLE="on").stdout, alone.stdout)
        self.assertEqual([record for record in self.allocs() if record["place"] not in ("device", "movable")], [])


del MovableCase
if __name__ == "__main__":
    unittest.main()

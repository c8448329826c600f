"""Rules: what each key matches and what each does, seen in the log and in the data; what a rule cannot have; and that a policy
without a fitting rule changes nothing. The pure part is in tests/unit/test_rule.c and test_decisions.c."""
import os
import unittest

from harness import ALL, KERNELS, MIB, PROGRAMS, apart, decided, held, in_order, program
from scripted import ScriptCase

OOM = "CUDA_ERROR_OUT_OF_MEMORY"
CALLS = min(int(os.environ.get("STORM_CALLS", "12000")), 100000)  # of more the log would not have each line (log.max)
TORCH = PROGRAMS / "libc10_cuda.so"


def most_held(records, rule):
    """The most device bytes that a rule held at any time, by the log: of what was asked for, as far as it came on the device."""
    holds, most = {}, 0
    for record in in_order(records):
        if record["kind"] == "alloc" and record.get("rule") == rule:
            holds[record["seq"]] = min(held(record)["device"], record["bytes"])
        elif record["kind"] == "free":
            holds.pop(record["seq"], 0)
        most = max(most, sum(holds.values()))
    return most


class RulesCase(ScriptCase):
    """A device of 64 MiB, of which nothing is kept free. Memory moves only where a rule or a test says so."""

    movable = "off"

    def run_ruled(self, rules, command, **variables):
        """`rules`: the policy file, a line a key."""
        policy = self.folder / "policy.conf"
        policy.write_text("\n".join(line.strip() for line in rules.splitlines()) + "\n", encoding="utf-8")
        policy.chmod(0o600)
        self.log.unlink(missing_ok=True)
        variables = {"SPILL_POLICY": policy, "SPILL_SIM_VRAM": "64MiB", "SPILL_DEVICE_RESERVE": "0"} | variables
        return self.run_in([str(word) for word in command], self.environment(**variables))

    def ruled(self, rules, words, name="script", **variables):
        return self.run_ruled(rules, [PROGRAMS / name, KERNELS, *words.split()], **variables)

    def data(self, smallest=4096):
        """What the program asked for, as (place, reason, rule); the log is checked."""
        return [(r["place"], r["reason"], r["rule"]) for r in decided(self.checked_records()) if r["bytes"] >= smallest]

    def last(self, kind="alloc"):
        return [r for r in self.checked_records() if r["kind"] == kind and r.get("reason") != "asked"][-1]

    def oom(self):
        return self.last("oom")


class Place(RulesCase):
    WORDS = "retain:0 alloc:a:4m:2 fill:a verify:a free:a info"

    def placed(self, place, words=WORDS, **variables):
        done = self.good(self.ruled(f"[rule mine]\nsize = 4MiB\nplace = {place}", words, **variables))
        self.assertEqual(self.numbers(done, "free"), [64 * MIB])
        return self.data()

    def test_at_once(self):
        for place in ("host", "managed", "split"):
            with self.subTest(place):
                self.assertEqual(self.placed(place), [(place, "rule", "mine")] * 2)

    def test_split_has_what_fits_on_the_device(self):
        self.good(self.ruled("[rule mine]\nsize = 20MiB\nplace = split",
                             "retain:0 alloc:b:50m alloc:a:20m:1 fill:a verify:a free:a free:b"))
        self.assertEqual(held(self.last()), {"device": 14 * MIB, "host": 6 * MIB, "managed": 0})

    def test_small_ones_of_split_stay_on_the_device(self):
        """They share chunks on host otherwise, which nobody wants while there is room."""
        rule = "[rule mine]\nsize = ..1MiB\nplace = split"
        self.good(self.ruled(rule, "retain:0 alloc:a:4k:3 fill:a verify:a free:a"))
        self.assertEqual(self.data(), [("device", "fits", "mine")] * 3)
        self.good(self.ruled(rule, "retain:0 alloc:b:62m alloc:a:900k:3 fill:a verify:a free:a free:b"))
        self.assertEqual(self.data(), [("device", "fits", "default"), ("device", "fits", "mine")] + [("split", "rule", "mine")] * 2)

    def test_movable_however_empty_the_device_is(self):
        self.assertEqual(self.placed("movable", SPILL_MOVABLE_ENABLE="auto"), [("movable", "fits", "mine")] * 2)
        self.assertEqual(self.placed("movable"), [("device", "fits", "mine")] * 2, "movable.enable = off holds")

    def test_movable_that_cannot_be_is_told(self):
        for variables, why in (({}, "movable.enable is off"),
                               ({"SPILL_MOVABLE_ENABLE": "auto", "SPILL_OOM_CHAIN": "host"}, "oom.chain has no demote"),
                               ({"SPILL_MOVABLE_ENABLE": "auto", "SPILL_SIM_CAPS": "novmm"}, "this device or its driver cannot move memory")):
            with self.subTest(why):
                self.assertEqual(self.placed("movable", **variables), [("device", "fits", "mine")] * 2)
                notes = [r["text"] for r in self.records() if r["kind"] == "note" and r["code"] == "movable"]
                self.assertEqual(notes, [f"no memory is made movable or moved: a rule has place = movable, and {why}"])

    def test_device_is_never_chunks(self):
        self.assertEqual(self.placed("device", SPILL_MOVABLE_ENABLE="on"), [("device", "fits", "mine")] * 2)
        self.good(self.ruled("[rule other]\nsize = 5MiB\nplace = device", self.WORDS, SPILL_MOVABLE_ENABLE="on"))
        self.assertEqual(self.data(), [("movable", "fits", "default")] * 2)

    def test_device_spills_when_it_is_full_as_without_a_rule(self):
        self.good(self.ruled("[rule mine]\nplace = device", "retain:0 alloc:a:40m:2 fill:a verify:a free:a",
                             SPILL_OOM_CHAIN="host"))
        self.assertEqual(self.data(), [("device", "fits", "mine"), ("host", "oom", "mine")])

    def test_refuse(self):
        done = self.ruled("[rule no]\nsize = 4MiB\nplace = refuse", "retain:0 alloc:b:5m alloc:a:4m free:b info")
        self.assertIn(f"alloc:a:4m {OOM}", done.stdout)
        self.assertEqual((self.oom()["rule"], self.oom()["refused_by"]), ("no", "rule.place"))
        self.assertEqual(self.numbers(done, "free"), [64 * MIB])

    def test_what_cannot_be_had_goes_on_without(self):
        for place, variables, error in (("host", {"SPILL_HOST_LIMIT": "1MiB"}, "host.limit"),
                                        ("managed", {"SPILL_HOST_LIMIT": "1MiB"}, "host.limit"),
                                        ("split", {"SPILL_SIM_CAPS": "novmm"}, "not supported by the device")):
            with self.subTest(place):
                self.assertEqual(self.placed(place, **variables), [("device", "fits", "mine")] * 2)
                self.assertEqual(self.last()["tried"], [{"place": place, "error": error}])

    def test_the_loud_line_names_the_rule(self):
        done = self.ruled("[rule mine]\nplace = host", "retain:0 alloc:a:4m free:a")
        self.assertIn("4.00 MiB of 4.00 MiB placed in host memory (rule mine); expect lower speed", done.stderr)

    def test_every_way_in(self):
        for name in ALL:
            with self.subTest(name):
                done = self.run_ruled("[rule mine]\nsize = 6MiB\nplace = host", program(name, "--count", "3", "--mib", "6"))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(set(self.data(MIB)), {("host", "rule", "mine")})


class Over(RulesCase):
    WORDS = "retain:0 alloc:b:40m fill:b alloc:a:30m fill:a verify:a verify:b free:a free:b info"

    def test_instead_of_an_empty_chain(self):
        for over in ("split", "managed", "host"):
            with self.subTest(over):
                done = self.good(self.ruled(f"[rule mine]\nsize = 30MiB\nover = {over}", self.WORDS, SPILL_OOM_CHAIN=""))
                self.assertEqual(self.data(), [("device", "fits", "default"), (over, "oom", "mine")])
                self.assertEqual(self.last()["tried"][1]["place"], "trim")
                self.assertEqual(self.numbers(done, "free"), [64 * MIB])

    def test_only_for_what_it_matches(self):
        done = self.ruled("[rule mine]\nsize = 31MiB\nover = host", self.WORDS, SPILL_OOM_CHAIN="")
        self.assertIn(f"alloc:a:30m {OOM}", done.stdout)
        self.assertEqual((self.oom()["rule"], self.oom()["refused_by"]), ("default", "driver"))

    def test_instead_of_another_chain(self):
        self.good(self.ruled("[rule mine]\nover = managed", self.WORDS, SPILL_OOM_CHAIN="host"))
        self.assertEqual(self.data()[1], ("managed", "oom", "mine"))

    def test_refuse(self):
        done = self.ruled("[rule mine]\nover = refuse", self.WORDS)
        self.assertIn(f"alloc:a:30m {OOM}", done.stdout)
        self.assertEqual((self.oom()["rule"], self.oom()["refused_by"]), ("mine", "rule.over"))

    def test_what_refuse_let_in_may_leave_unless_it_is_on_the_device_for_good(self):
        for more, leaves in (("", True), ("place = device", False)):
            with self.subTest(more):
                done = self.ruled(f"[rule mine]\nsize = 40MiB\nover = refuse\n{more}", "alloc:b:40m fill:b alloc:a:30m",
                                  "movable", SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_WAIT="30s", SPILL_OOM_CHAIN="demote")
                self.assertEqual(OOM in done.stdout, not leaves, done.stdout + done.stderr)
                self.assertEqual(bool(self.moves(self.records())), leaves)

    def test_at_the_device_s_limit(self):
        self.good(self.ruled("[rule mine]\nover = host", self.WORDS, SPILL_DEVICE_LIMIT="50MiB"))
        self.assertEqual(self.data()[1], ("host", "limit", "mine"))


class Cap(RulesCase):
    RULE = "[rule mine]\nsize = 4MiB\ncap = 8MiB\n"
    DEVICE = ("device", "fits", "mine")

    def test_what_is_above_goes_over(self):
        done = self.ruled(self.RULE + "over = host", "retain:0 alloc:a:4m:3 alloc:b:5m fill:a verify:a free:a alloc:a:4m:2 info")
        self.good(done)
        self.assertEqual(self.data(), [self.DEVICE] * 2 + [("host", "limit", "mine"), ("device", "fits", "default")] + [self.DEVICE] * 2)
        self.assertEqual([r["tried"] for r in decided(self.records()) if "tried" in r], [[{"place": "device", "error": "rule.cap"}]])
        self.assertIn("(rule mine at its cap)", done.stderr)

    def test_a_split_takes_what_is_left(self):
        self.good(self.ruled(self.RULE.replace("8MiB", "6MiB"), "retain:0 alloc:a:4m:3 fill:a verify:a free:a alloc:a:4m info",
                             SPILL_OOM_CHAIN="split"))
        devices = [held(r)["device"] // MIB for r in decided(self.checked_records())]
        self.assertEqual(devices, [4, 2, 0, 4])

    def test_places_are_within_it(self):
        """What is on the device of a place counts, too: split and what is prefetched."""
        for place in ("split", "managed"):
            with self.subTest(place):
                self.good(self.ruled(self.RULE + f"place = {place}\nprefetch = on", "retain:0 alloc:a:4m:3 fill:a verify:a free:a alloc:a:4m"))
                self.assertEqual([held(r)["device"] // MIB for r in decided(self.checked_records())], [4, 4, 0, 4])

    def test_what_is_above_stays_on_host(self):
        """Other memory comes back once there is room for both, or before work that reads both; what is above the cap does not."""
        for follow, moved in (("off", "free:c back:b busy:50"), ("on", "free:c" + " fill:a fill:b verify:a verify:b" * 5 + " back:b")):
            with self.subTest(follow=follow):
                done = self.good(self.ruled("[rule mine]\nsize = 16MiB\ncap = 8MiB\nover = split",
                                            f"alloc:a:16m fill:a early:b:40m fill:b alloc:c:30m {moved} where:a verify:a verify:b",
                                            "movable", SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB", SPILL_MOVABLE_FOLLOW=follow))
                self.assertIn("where a ddddhhhh\n", done.stdout)
                self.assertTrue([r for r in self.records() if r["kind"] == "move" and r["what"] == "promote"])

    def test_what_is_above_of_the_program_s_own_physical_memory_stays_on_host(self):
        done = self.good(self.ruled("[rule mine]\nsize = 16MiB\ncap = 8MiB\nover = split",
                                    "create:a:16m map:a fill:a create:b:40m map:b fill:b create:c:30m map:c fill:c release:c unmap:c back:b "
                                    "side:a side:b verify:a verify:b", "vmm", SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB"))
        self.assertIn("side a ddddhhhh\n", done.stdout)
        self.assertIn(f"side b {'d' * 20}\n", done.stdout)

    def test_nothing_is_trimmed_or_moved_for_it(self):
        self.ruled(self.RULE, "retain:0 alloc:b:20m alloc:a:4m:3", SPILL_MOVABLE_ENABLE="on", SPILL_OOM_CHAIN="trim,demote")
        self.assertEqual((self.oom()["rule"], self.oom()["refused_by"]), ("mine", "rule.cap"))
        self.assertEqual([attempt["place"] for attempt in self.oom()["tried"]], ["device"])
        self.assertEqual(self.moves(self.records()), [])

    def test_all_devices_together(self):
        self.good(self.ruled(self.RULE + "over = host", "retain:0 alloc:a:4m retain:1 alloc:b:4m alloc:c:4m", SPILL_SIM_DEVICES="2"))
        self.assertEqual([place for place, _, _ in self.data()], ["device", "device", "host"])

    def test_is_never_exceeded(self):
        """Eight threads; what a rule held at any time follows from the log."""
        for rule in ("over = host", "over = split", "place = split"):
            with self.subTest(rule):
                done = self.run_ruled(f"[rule mine]\ncap = 9MiB\n{rule}", [PROGRAMS / "threads", 8, 40])
                self.assertEqual((done.returncode, done.stdout), (0, "bad 0\n"), done.stderr)
                most = most_held(self.checked_records(), "mine")
                self.assertLessEqual(most, 9 * MIB)
                self.assertGreater(most, 4 * MIB)

    def test_comes_back_with_every_end(self):
        """Each way to end what holds the whole cap; then as much is on the device again."""
        over = "[rule mine]\ncap = 8MiB\nsize = 1MiB..\nover = host"
        for name, words in (("script", "retain:0 alloc:a:4m:2 async free:a alloc:b:4m:2"),
                            ("script", "create:c:0 alloc:a:4m:2 destroy:c retain:0 alloc:b:4m:2"),
                            ("script", "retain:0 alloc:a:4m:2 reset:0 retain:0 alloc:b:4m:2"),
                            ("ordered", "alloc:a:4m:2 free:a alloc:b:4m:2"),
                            ("ordered", "alloc:a:4m:2 sfree:a alloc:b:4m:2"),
                            ("vmm", "create:a:8m map:a unmap:a release:a create:b:8m"),
                            ("vmm", "pool:a:4m:2 unmap:a create:b:8m")):
            with self.subTest(name, words=words):
                self.good(self.ruled(over, words, name))
                self.assertEqual({r["place"] for r in decided(self.checked_records()) if r["bytes"] >= MIB}, {"device"})

    def test_comes_back_when_the_driver_refuses(self):
        self.good(self.ruled(self.RULE + "over = host", "retain:0 alloc:b:62m alloc:a:4m free:b alloc:a:4m:2", SPILL_OOM_CHAIN=""))
        self.assertEqual(self.data()[1:], [("host", "oom", "mine"), self.DEVICE, self.DEVICE])


class Matching(RulesCase):
    def hosts(self, key, words, name="script", **variables):
        """Of what is 1 MiB and more, which a rule with this key has put on host."""
        done = self.ruled(f"[rule mine]\n{key}\nplace = host", words, name, **variables)
        self.good(done)
        places = [(r["place"], r["rule"]) for r in decided(self.checked_records()) if r["bytes"] >= MIB]
        for place, rule in places:
            self.assertEqual(rule, "mine" if place == "host" else "default")
        return [place == "host" for place, _ in places]

    def test_size(self):
        words = "retain:0 alloc:a:2m alloc:b:3m alloc:c:4m"
        for size, expected in (("3MiB", [0, 1, 0]), ("3MiB..", [0, 1, 1]), ("..3MiB", [1, 1, 0]), ("2MiB..3MiB", [1, 1, 0])):
            with self.subTest(size):
                self.assertEqual(self.hosts(f"size = {size}", words), [bool(one) for one in expected])

    def test_api(self):
        words = "alloc:a:4m plain:b:4m"
        for api, expected in (("cuMemAlloc", [0, 1]), ("cuMemAlloc_v2", [0, 1]), ("cuMemAllocAsync", [1, 0]), ("cuMemAlloc*", [1, 1]),
                              ("cudaMalloc", [0, 0])):
            for stream in ("own", "thread"):
                with self.subTest(api, stream=stream):
                    self.assertEqual(self.hosts(f"api = {api}", f"stream:{stream} {words}", "ordered"), [bool(one) for one in expected])

    def test_api_is_what_the_program_called(self):
        """Below the runtime the driver's function is called; the rule means the program's call."""
        for name, api, expected in (("prog_runtime", "cudaMalloc", "host"), ("prog_runtime", "cuMemAlloc", "device"),
                                    ("prog_driver_link", "cuMemAlloc", "host"), ("prog_hip", "hipMalloc", "host")):
            with self.subTest(name, api=api):
                done = self.run_ruled(f"[rule mine]\napi = {api}\nplace = host", program(name, "--count", "1", "--mib", "6"))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual({place for place, _, _ in self.data(MIB)}, {expected})

    def test_caller(self):
        """The library that called, by name or by path; the program by its executable's."""
        for glob, library, expected in (("libc10_cuda.so", TORCH, "host"), ("libc10*", TORCH, "host"), ("*/libc10_cuda.so", TORCH, "host"),
                                        ("/nowhere/libc10_cuda.so", TORCH, "device"), ("retrier", TORCH, "device"),
                                        ("libplain_retrier.so", TORCH, "device"), ("retrier_program", None, "host"),
                                        (str(PROGRAMS / "retrier_program"), None, "host"), ("libc10_cuda.so", None, "device")):
            with self.subTest(glob, library=library):
                command = [PROGRAMS / "retrier", library] if library else [PROGRAMS / "retrier_program"]
                done = self.run_ruled(f"[rule mine]\ncaller = {glob}\nplace = host", command + ["take:a:4", "take:b:4", "check:a"])
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual([place for place, _, _ in self.data(MIB)], [expected] * 2)

    def test_device(self):
        words = "retain:0 alloc:a:4m retain:1 alloc:b:4m retain:2 alloc:c:4m"
        for device, expected in (("1", [0, 1, 0]), ("0, 2", [1, 0, 1])):
            with self.subTest(device):
                self.assertEqual(self.hosts(f"device = {device}", words, SPILL_SIM_DEVICES="3"), [bool(one) for one in expected])

    def test_program(self):
        for glob, expected in (("script", True), ("scr*", True), ("ordered", False)):
            with self.subTest(glob):
                self.assertEqual(self.hosts(f"program = {glob}", "retain:0 alloc:a:4m"), [expected])

    def test_rank(self):
        """By any launcher's variable. What has no rank is in no rule of ranks."""
        for variables, expected in (({"SLURM_PROCID": "0"}, True), ({"OMPI_COMM_WORLD_RANK": "12"}, True), ({"RANK": "7"}, False),
                                    ({"RANK": "1", "SLURM_PROCID": "0"}, False), ({}, False)):
            with self.subTest(variables):
                self.assertEqual(self.hosts("rank = 0, 8..15", "retain:0 alloc:a:4m", **variables), [expected])

    def test_growth(self):
        """Each 1 MiB larger than the last, from one call site; the third makes a run. The same size again ends it."""
        growing = "retain:0 " + " ".join(f"alloc:{letter}:{size}m" for letter, size in zip("abcde", (4, 5, 6, 7, 7)))
        self.assertEqual(self.hosts("growth = yes", growing), [False, False, True, True, False])
        self.assertEqual(self.hosts("growth = no", growing), [True, True, False, False, True])

    def test_growth_is_of_what_was_served(self):
        """One that failed is no part of a run, and asking about it is none."""
        done = self.ruled("[rule no]\nsize = 5MiB\nplace = refuse\n[rule mine]\ngrowth = yes\nplace = host",
                          "retain:0 alloc:a:4m alloc:b:5m alloc:b:5m alloc:b:5m alloc:c:6m alloc:d:7m")
        self.assertIn(OOM, done.stdout)
        self.assertEqual([place for place, _, _ in self.data()], ["device", "device", "host"])

    def test_growth_is_the_same_for_movable_memory(self):
        """Older blocks of a run are the first to leave, also where a rule has asked about it before."""
        words = "early:z:16m alloc:a:10m alloc:b:11m alloc:c:12m alloc:d:14m where:z where:a where:b"
        rules = "[rule run]\ngrowth = yes\npriority = hot"
        done = self.ruled(rules, words, "movable", SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB", SPILL_SIM_VRAM="56MiB")
        self.good(done)
        self.assertEqual([r["rule"] for r in decided(self.records()) if r["bytes"] >= MIB][-2:], ["run", "run"])
        self.assertIn("where z dddddddd", done.stdout)
        self.assertIn("h", [line for line in done.stdout.splitlines() if line.startswith("where a ")][0].split()[2])

    def test_the_first_that_matches_is_the_one(self):
        self.good(self.ruled("[rule one]\nsize = 4MiB\npriority = hot\n[rule two]\nsize = 1MiB..\nplace = host",
                             "retain:0 alloc:a:4m alloc:b:5m"))
        self.assertEqual(self.data(), [("device", "fits", "one"), ("host", "rule", "two")])


class Other(RulesCase):
    """Acts beside places."""

    def where(self, rules):
        """A block of 20 and one of 21 MiB, then 30 more on 64: which of the first two has left, at least in part."""
        done = self.good(self.ruled(rules, "alloc:a:20m fill:a alloc:b:21m fill:b alloc:c:30m fill:c where:a where:b verify:a verify:b verify:c",
                                    "movable", SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB", SPILL_MOVABLE_WAIT="30s"))
        return {line.split()[1]: "h" in line.split()[2] for line in done.stdout.splitlines() if line.startswith("where ")}

    def test_priority(self):
        self.assertEqual(self.where(""), {"a": True, "b": False})
        self.assertEqual(self.where("[rule cold]\nsize = 21MiB\npriority = cold"), {"a": False, "b": True})
        self.assertEqual(self.where("[rule hot]\nsize = 20MiB\npriority = hot"), {"a": False, "b": True})
        self.assertEqual(self.where("[rule all]\npriority = cold"), {"a": True, "b": False})

    def test_prefetch(self):
        for prefetch, below, expected in (("on", "0", 4), ("off", "1GiB", 0)):
            with self.subTest(prefetch):
                self.good(self.ruled(f"[rule mine]\nplace = managed\nprefetch = {prefetch}", "retain:0 alloc:a:4m fill:a verify:a free:a",
                                     SPILL_MANAGED_PREFETCH_BELOW=below))
                self.assertEqual(held(self.last())["device"], expected * MIB)

    def advised(self, rules, words="retain:0 alloc:a:4m:1 fill:a verify:a"):
        trace = self.folder / "trace"
        trace.unlink(missing_ok=True)
        self.good(self.ruled(rules, words, SPILL_SIM_TRACE=trace))
        return [line.strip() for line in trace.read_text(encoding="utf-8").splitlines() if "cuMemAdvise" in line]

    def test_managed_keys(self):
        """By default two: preferred on host, accessed by the device."""
        rule = "[rule mine]\nplace = managed\n"
        self.assertEqual(len(self.advised(rule)), 2)
        self.assertEqual(len(self.advised(rule + "managed.preferred = none")), 1)
        self.assertEqual(len(self.advised(rule + "managed.accessed_by =")), 1)
        self.assertEqual(len(self.advised(rule + "managed.accessed_by = device, host")), 3)
        self.assertEqual(len(self.advised(rule + "managed.read_mostly = yes")), 3)

    def test_small_ones_of_other_advice_do_not_share(self):
        """A chunk is advised once; blocks of a rule with other advice are in another."""
        rules = "[rule one]\nsize = 4KiB\nplace = managed\n[rule two]\nsize = 8KiB\nplace = managed\n"
        words = "retain:0 alloc:a:4k:3 alloc:b:8k:3 fill:a fill:b verify:a verify:b"
        self.assertEqual(len(self.advised(rules, words)), 2)
        self.assertEqual(len(self.advised(rules + "managed.read_mostly = yes", words)), 5)

    def failures(self, rules, library, **variables):
        """Takes more than fits, asks again after a failure: how often it saw one."""
        command = [PROGRAMS / "retrier", library] if library else [PROGRAMS / "retrier_program"]
        done = self.run_ruled(rules, command + "take:a:4 take:d:20 take:e:16 check:a check:d check:e".split(), SPILL_SIM_VRAM="32MiB", **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line.split()[1] for line in done.stdout.splitlines()[-3:]], ["right"] * 3)
        return int(done.stdout.splitlines()[-1].split()[2])

    def test_honest(self):
        self.assertEqual(self.failures("[rule mine]\npriority = hot", None), 0)
        self.assertEqual(self.failures("[rule mine]\nhonest = off", None), 0)
        self.assertEqual(self.failures("[rule mine]\nhonest = on", None), 1)
        self.assertEqual(self.oom()["refused_by"], "oom.honest_first")
        self.assertEqual(self.failures("[rule mine]\npriority = hot", TORCH), 1)
        self.assertEqual(self.failures("[rule mine]\nhonest = off", TORCH), 0)
        self.assertEqual(self.failures("[rule mine]\nhonest = on", None, SPILL_OOM_HONEST_FIRST="off"), 1)


class Kinds(RulesCase):
    """Kinds of memory other than plain."""

    def test_stream_ordered(self):
        for place in ("managed", "host"):
            with self.subTest(place):
                self.good(self.ruled(f"[rule mine]\nsize = 1MiB..\nplace = {place}",
                                     "alloc:a:8m:2 fill:a verify:a sync free:a alloc:b:8m:2 fill:b verify:b sync free:b sync", "ordered"))
                self.assertEqual(self.data(MIB), [(place, "rule", "mine")] * 4)
                live = self.records()[-1]["live"]
                self.assertEqual((live["device_bytes"], live["managed_bytes"]), (0, 0))

    def test_managed_is_not_what_was_on_host_before(self):
        """Host memory that is kept for the next such request serves no rule that says managed."""
        rules = "[rule host]\nsize = 9MiB\nplace = host\n[rule managed]\nsize = 8704KiB\nplace = managed\nmanaged.read_mostly = yes"
        self.good(self.ruled(rules, "alloc:a:9m fill:a free:a alloc:b:8704k fill:b verify:b free:b sync", "ordered"))
        self.assertEqual([held(r)["managed"] for r in decided(self.checked_records()) if r["bytes"] >= MIB], [0, 8704 << 10])

    def test_what_has_no_split_stays_on_the_device(self):
        """On host as a whole is what nobody wants while there is room."""
        for name, words in (("ordered", "alloc:a:40m alloc:b:40m fill:b verify:b sync free:b free:a sync"),
                            ("vmm", "create:a:40m create:b:40m map:b fill:b verify:b unmap:b release:b release:a")):
            with self.subTest(name):
                self.good(self.ruled("[rule mine]\nsize = 1MiB..\nplace = split", words, name))
                placed = "split" if name == "ordered" else "host"
                self.assertEqual(self.data(MIB), [("device", "fits", "mine"), (placed, "rule", "mine")])
                first = [r for r in decided(self.records()) if r["bytes"] >= MIB][0]
                self.assertEqual(first["tried"], [{"place": "split", "error": "small enough for the device"}])

    def test_stream_ordered_refused_and_capped(self):
        done = self.ruled("[rule no]\nsize = 4MiB\nplace = refuse\n[rule mine]\nsize = 5MiB\ncap = 10MiB\nover = managed",
                          "alloc:a:4m alloc:b:5m:3 fill:b verify:b sync free:b sync", "ordered")
        self.assertIn(f"alloc:a:4m {OOM}", done.stdout)
        self.assertEqual([place for place, _, _ in self.data(MIB)], ["device", "device", "managed"])
        done = self.ruled("[rule mine]\nsize = 5MiB\ncap = 10MiB\nover = managed", "alloc:b:5m:3 fill:b verify:b sync free:b sync", "ordered",
                          SPILL_DEVICE_LIMIT="60MiB")
        self.good(done)
        self.assertEqual([place for place, _, _ in self.data(MIB)], ["device", "device", "managed"])

    def test_physical(self):
        for place, expected in (("host", ("host", "rule", "mine")), ("managed", ("device", "fits", "mine"))):
            with self.subTest(place):
                self.good(self.ruled(f"[rule mine]\napi = cuMemCreate\nplace = {place}", "create:a:8m map:a fill:a verify:a unmap:a release:a", "vmm"))
                self.assertEqual(self.data(MIB), [expected])
        self.assertEqual(self.last()["tried"], [{"place": "managed", "error": "not for physical memory"}])

    def test_physical_of_a_wrong_size_is_the_vendor_s_to_judge(self):
        words = "create:a:3k"
        alone = self.run_in([str(PROGRAMS / "vmm"), KERNELS, words], self.environment(preload=False))
        done = self.ruled("[rule no]\nplace = refuse", words, "vmm")
        self.assertEqual(done.stdout, alone.stdout)
        self.assertNotIn(OOM, done.stdout)

    def test_hip(self):
        for keys, expected in (("place = host", [("host", "rule", "mine")] * 4), ("cap = 12MiB\nover = host", [("device", "fits", "mine")] * 2 + [("host", "limit", "mine")] * 2)):
            with self.subTest(keys):
                done = self.run_ruled(f"[rule mine]\nsize = 6MiB\n{keys}", program("prog_hip", "--count", "4", "--mib", "6"))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(self.data(MIB)[:4], expected)

    def test_in_a_capture(self):
        """Placed where the driver allows the thread to allocate, and passed through where not."""
        for mode, placed in ((0, False), (2, True)):
            words = f"begin:a:{mode} alloc:4 status:a end:a alloc:4 look free".split()
            alone = self.run_in([str(PROGRAMS / "capturing"), *words], self.environment(preload=False))
            for place in ("host", "managed", "split"):
                with self.subTest(place, mode=mode):
                    done = self.run_ruled(f"[rule mine]\nplace = {place}", [PROGRAMS / "capturing", *words])
                    self.assertEqual(done.stdout, alone.stdout)
                    self.assertEqual(self.data(MIB), [(place, "rule", "mine")] * (2 if placed else 1))


class Storm(RulesCase):
    """The random program of test_storm.py, with arrays, pools, handles and graphs, on eight threads."""

    CAPS = {"small": 1 * MIB, "cut": 2 * MIB, "large": 3 * MIB}
    RULES = """[rule small]
        size = ..100KiB
        cap = 1MiB
        over = host
        [rule none]
        api = cuMemAllocPitch
        place = refuse
        [rule read]
        size = 100KiB..400KiB
        place = managed
        managed.read_mostly = yes
        [rule cut]
        size = 400KiB..700KiB
        place = split
        cap = 2MiB
        [rule pieces]
        api = *Async*
        growth = no
        place = host
        [rule large]
        cap = 3MiB
        over = split
        honest = on
        priority = cold
        """

    def storm(self, rules, vram, **variables):
        done = self.run_ruled(rules, [PROGRAMS / "storm", KERNELS, 1, CALLS, 8, 4096], SPILL_SIM_VRAM=vram, **variables)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def test_no_byte_is_lost_and_no_cap_exceeded(self):
        for variables in ({}, {"SPILL_MOVABLE_ENABLE": "on"}):
            with self.subTest(**variables):
                self.storm(self.RULES, "96MiB", **variables)
                records = self.checked_records()
                self.assertEqual(set(records[-1]["live"].values()), {0}, "nothing is left in the ledger")
                self.assertEqual({r["rule"] for r in decided(records)} | {"none"}, set(self.CAPS) | {"read", "pieces", "none"})
                for rule, cap in self.CAPS.items():
                    self.assertLessEqual(most_held(records, rule), cap)

    def test_observed_it_is_equal(self):
        alone = self.run_in([str(PROGRAMS / "storm"), KERNELS, "1", str(CALLS), "8", "4096"], self.environment(preload=False, SPILL_SIM_VRAM="4GiB"))
        self.assertEqual(self.storm(self.RULES, "4GiB", SPILL_MODE="observe").stdout, alone.stdout)


class NothingChanges(RulesCase):
    RULES = """[rule refused]
        size = 5MiB
        place = refuse
        [rule host]
        size = 4MiB
        place = host
        [rule capped]
        size = 6MiB
        cap = 5MiB
        [rule run]
        growth = yes
        place = managed
        """
    WORDS = "retain:0 alloc:a:4m fill:a verify:a alloc:b:5m alloc:c:6m fill:c verify:c alloc:d:7m alloc:e:60m free:a free:c info"

    def test_observed(self):
        alone = self.run_in([str(PROGRAMS / "script"), KERNELS, *self.WORDS.split()], self.environment(preload=False, SPILL_SIM_VRAM="64MiB"))
        done = self.ruled(self.RULES, self.WORDS, SPILL_MODE="observe")
        self.assertEqual((done.stdout, apart(done.stderr)[0]), (alone.stdout, alone.stderr))
        self.assertEqual([(r["place"], r["reason"], r["rule"], r.get("would")) for r in decided(self.checked_records())],
                         [("device", "fits", "host", "host"), ("device", "fits", "refused", "refuse"), ("device", "limit", "capped", "split"),
                          ("device", "fits", "run", "managed")])
        self.assertEqual((self.oom()["rule"], self.oom()["would"]), ("default", "split"))

    def test_without_a_rule_that_fits(self):
        """The driver hears the same calls, and the log says the same, as without rules."""
        calls, lines = [], []
        trace = self.folder / "trace"
        for rules in ("", "[rule other]\nsize = 77MiB\nplace = host\n[rule elsewhere]\ncaller = libnobody.so\ngrowth = yes\nplace = refuse\ncap = 1MiB"):
            trace.unlink(missing_ok=True)
            self.ruled(rules, self.WORDS, SPILL_SIM_TRACE=trace)
            calls.append(trace.read_text(encoding="utf-8"))
            lines.append([{key: value for key, value in record.items() if key in ("kind", "place", "bytes", "reason", "rule", "tried", "refused_by")}
                          for record in self.checked_records() if record["kind"] not in ("start", "exit")])
        self.assertEqual(calls[0], calls[1])
        self.assertEqual(lines[0], lines[1])


class Told(RulesCase):
    def test_the_start_line_has_the_rules_behind_the_options(self):
        """A profile's too: its text is in the library, and its rule is the last."""
        self.good(self.ruled("[spill]\nprofile = gh200-managed\n[rule mine]\nsize = 4MiB..\nplace = host",
                             "retain:0 alloc:a:4m alloc:b:2m free:a free:b"))
        rules = [option for option in self.checked_records()[0]["policy"] if option["name"].startswith("rule ")]
        self.assertEqual([option["name"] for option in rules], ["rule mine", "rule all-managed"])
        self.assertEqual((rules[0]["value"], rules[0]["source"]),
                         ("size = 4MiB..; place = host", f"{self.folder / 'policy.conf'}:3"))
        self.assertRegex(rules[1]["source"], "^profile gh200-managed:[0-9]+$")
        self.assertEqual(self.data(), [("host", "rule", "mine"), ("managed", "rule", "all-managed")])


if __name__ == "__main__":
    unittest.main()

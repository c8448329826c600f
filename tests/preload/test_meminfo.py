"""meminfo.report: what a program is told about free and total memory, by the CUDA driver, the CUDA runtime and HIP."""
import functools
import unittest

from harness import MIB, PROGRAMS, Case, decided, of_release

PROGRAMS_OF_ALL = ["meminfo_driver", "meminfo_runtime", "meminfo_static", "meminfo_hip_5", "meminfo_hip_6"]
# What each asks about the total of a device that need not be current.
TOTALS = {"meminfo_driver": ["total"], "meminfo_runtime": ["props"], "meminfo_static": ["props"],
          "meminfo_hip_5": ["total", "props"], "meminfo_hip_6": ["total", "props"]}
LIMITS = {"SPILL_DEVICE_LIMIT": "40MiB", "SPILL_DEVICE_1_LIMIT": "24MiB"}
HOST = {"SPILL_HOST_LIMIT": "100MiB", "SPILL_HOST_RESERVE": "0"}


def each(test):
    """The test for each program."""
    @functools.wraps(test)
    def of_each(self):
        for name in PROGRAMS_OF_ALL:
            with self.subTest(name):
                test(self, name)
    return of_each


class Meminfo(Case):
    movable = "off"  # figures are those of the words

    def ask(self, name, words, *, preload=True, vram="64MiB", **variables):
        """The program's lines, each split."""
        if name.endswith("_6"):
            variables["LD_LIBRARY_PATH"] = of_release(6)
        self.log.unlink(missing_ok=True)
        done = self.run_program([str(PROGRAMS / name), *words.split()], preload=preload, vram=vram,
                                **{"SPILL_SIM_DEVICES": "2", **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [line.split() for line in done.stdout.splitlines()]

    def info(self, lines):
        """(free, total) in MiB of each question about both."""
        return [(int(line[2]) / MIB, int(line[3]) / MIB) for line in lines if line[0] == "info"]


class Unchanged(Meminfo):
    """The driver's own answers: of every question, with every argument, and no call more."""

    WORDS = "device:0 info {} odd alloc:8 info device:1 info free device:0 info"

    # What changes nothing: the default, a limit with it, the word itself, no limit, one beyond the device, observe, off.
    SAME = ({}, LIMITS, {"SPILL_MEMINFO_REPORT": "honest", **LIMITS}, {"SPILL_MEMINFO_REPORT": "limit"},
            {"SPILL_MEMINFO_REPORT": "limit", "SPILL_DEVICE_LIMIT": "64GiB"},
            {"SPILL_MEMINFO_REPORT": "spill", "SPILL_OOM_CHAIN": ""},
            {"SPILL_MEMINFO_REPORT": "spill", "SPILL_MODE": "observe", **LIMITS, **HOST},
            {"SPILL_MEMINFO_REPORT": "limit", "SPILL_MODE": "observe", **LIMITS},
            {"SPILL_MEMINFO_REPORT": "limit", "SPILL": "0", **LIMITS})

    def words(self, name):
        return self.WORDS.format(" ".join(f"{total}:0 {total}:1" for total in TOTALS[name]))

    @each
    def test_answers(self, name):
        alone = self.ask(name, self.words(name), preload=False)
        self.assertEqual(self.info(alone), [(64, 64), (56, 64), (64, 64), (64, 64)])
        for variables in self.SAME:
            self.assertEqual(self.ask(name, self.words(name), **variables), alone, variables)

    @each
    def test_calls(self, name):
        """Questions alone, so that the driver's calls are the program's; what a start looks up is left out."""
        calls = []
        words = "device:0 info info " + " ".join(f"{total}:1" for total in TOTALS[name])
        for preload, variables in (False, {}), (True, {}), (True, LIMITS), (True, {"SPILL_MEMINFO_REPORT": "honest"}):
            trace = self.folder / "trace"
            trace.unlink(missing_ok=True)
            self.ask(name, words, preload=preload, SPILL_SIM_TRACE=trace, **variables)
            calls.append([call for call in trace.read_text(encoding="utf-8").split() if "GetProcAddress" not in call])
            self.assertFalse(self.log.exists(), "a question opens no log")
            self.assertEqual(calls[-1], calls[0], variables)
        self.assertGreater(len(calls[0]), 3)


class Limit(Meminfo):
    """No more than device.limit leaves of each device."""

    @each
    def test_of_each_device(self, name):
        words = "device:0 info alloc:8 info device:1 info alloc:20 info device:0 info free info"
        expected = [(40, 40), (32, 40), (24, 24), (4, 24), (32, 40), (40, 40)]
        lines = self.ask(name, words, SPILL_MEMINFO_REPORT="limit", **LIMITS)
        self.assertEqual(self.info(lines), expected)
        self.assertEqual(self.info(self.ask(name, words, SPILL_MEMINFO_REPORT="limit", SPILL_DEVICE_LIMIT="50%",
                                            SPILL_DEVICE_1_LIMIT="24MiB")),
                         [(free - 8, 32) if total == 40 else (free, total) for free, total in expected])

    @each
    def test_total_of_any_device(self, name):
        words = "device:0 " + " ".join(f"{total}:{device}" for total in TOTALS[name] for device in (0, 1))
        alone = self.ask(name, words, preload=False)
        for limits, expected in ((LIMITS, [40, 24]), ({"SPILL_DEVICE_LIMIT": "50%"}, [32, 32]), ({"SPILL_DEVICE_1_LIMIT": "0"}, [64, 0])):
            lines = self.ask(name, words, SPILL_MEMINFO_REPORT="limit", **limits)
            self.assertEqual([int(line[2]) / MIB for line in lines[1:]], expected * len(TOTALS[name]))
            # Nothing beside the total is touched.
            self.assertEqual([line[:2] + line[3:] for line in lines], [line[:2] + line[3:] for line in alone])

    @each
    def test_odd_questions(self, name):
        """Arguments and errors are judged by the vendor, and its last error stays what it is by either rule of HIP's."""
        for rule in ("sticky", "overwritten"):
            words = "device:0 alloc:8 odd"
            alone = self.ask(name, words, preload=False, SPILL_SIM_LAST_ERROR=rule)
            lines = self.ask(name, words, SPILL_MEMINFO_REPORT="limit", SPILL_SIM_LAST_ERROR=rule, SPILL_DEVICE_LIMIT="50%")
            self.assertEqual(len(lines), len(alone))
            told = {line[0]: line[2:4] for line in lines if len(line) > 4}
            for line, same in zip(lines, alone):
                self.assertEqual((line[:2], line[-2:]), (same[:2], same[-2:]))
                if same[1] != "0":
                    self.assertEqual(line, same)
            self.assertEqual(told["behind-an-error"], [str(24 * MIB), str(32 * MIB)])
            if "hip" not in name:
                self.assertEqual(told["no-free"], ["77", str(32 * MIB)])
                self.assertEqual(told["no-total"], [str(24 * MIB), "77"])

    @each
    def test_others_hold_more_than_the_limit_leaves(self, name):
        """The smaller of what the driver has and what the limit leaves."""
        lines = self.ask(name, "device:0 info alloc:8 info", vram="64MiB", SPILL_SIM_CONTEXT="16MiB",
                         SPILL_MEMINFO_REPORT="limit", SPILL_DEVICE_LIMIT="60MiB")
        alone = self.ask(name, "device:0 info alloc:8 info", vram="64MiB", SPILL_SIM_CONTEXT="16MiB", preload=False)
        self.assertEqual(self.info(lines), [(min(free, 60 - used), 60) for (free, _), used in zip(self.info(alone), (0, 8))])
        self.assertEqual([free for free, _ in self.info(lines)][-1], 40)

    @each
    def test_a_total_asks_the_vendor_nothing_else(self, name):
        """A share is of the very answer: a device that the program does not use is not touched for it."""
        words = "device:0 " + " ".join(f"{total}:1" for total in TOTALS[name])
        calls = []
        for variables in ({"preload": False}, {"SPILL_MEMINFO_REPORT": "limit", "SPILL_DEVICE_LIMIT": "50%"}):
            trace = self.folder / "trace"
            trace.unlink(missing_ok=True)
            self.ask(name, words, SPILL_SIM_TRACE=trace, **variables)
            calls.append([call for call in trace.read_text(encoding="utf-8").split()
                          if "GetProcAddress" not in call and "LastError" not in call])
        self.assertEqual(*calls)

    def test_what_a_pool_gave_back_is_free(self):
        """The driver's pools are looked at again: they let go when they like."""
        lines = self.ask("meminfo_driver", "device:0 info pool:8 info", SPILL_MEMINFO_REPORT="limit", **LIMITS)
        before, after = self.info(lines)
        during = int(lines[2][2]) / MIB
        self.assertEqual((before, after), ((40, 40), (40, 40)))
        self.assertEqual(lines[2][1], "0")
        self.assertEqual(during, 8)  # pools grow in steps of 32 MiB

    @each
    def test_a_program_that_asks_stays_within(self, name):
        """Who sizes a cache by what is free fills the limit and spills nothing; told the driver's figures it spills."""
        lines = self.ask(name, "device:0 alloc:8 cache:8", SPILL_MEMINFO_REPORT="limit", **LIMITS)
        self.assertEqual(lines[-1], ["cache", "6"])
        records = self.checked_records()
        self.assertEqual({record["place"] for record in decided(records)}, {"device"})
        self.assertEqual((records[-1]["spills"], records[-1]["ooms"]), (0, 0))
        self.assertEqual(records[-1]["peak"]["device_bytes"], 32 * MIB)
        self.ask(name, "device:0 alloc:8 cache:8", **LIMITS, **HOST)
        self.assertGreater(self.checked_records()[-1]["spills"], 0)


class Spill(Meminfo):
    """And what the host could take on top, told once whatever calls lie above each other."""

    @each
    def test_with_the_host(self, name):
        lines = self.ask(name, "device:0 info alloc:8 info alloc:48 info free info device:1 info",
                         SPILL_MEMINFO_REPORT="spill", SPILL_DEVICE_RESERVE="0", **LIMITS, **HOST)
        # Each of the two devices is told half of the host's 100. CUDA splits what is over the limit, HIP has it on the host whole.
        later = 32 + 26 if "hip" in name else 42
        self.assertEqual(self.info(lines), [(90, 90), (82, 90), (later, 90), (90, 90), (74, 74)])
        big = decided(self.checked_records())[-1]
        self.assertEqual(big["host_bytes"] // MIB, 48 if "hip" in name else 16)

    @each
    def test_total_of_any_device(self, name):
        words = "device:0 " + " ".join(f"{total}:{device}" for total in TOTALS[name] for device in (0, 1))
        lines = self.ask(name, words, SPILL_MEMINFO_REPORT="spill", **LIMITS, **HOST)
        self.assertEqual([int(line[2]) / MIB for line in lines[1:]], [90, 74] * len(TOTALS[name]))

    @each
    def test_without_a_device_limit(self, name):
        lines = self.ask(name, "device:0 alloc:8 info", SPILL_MEMINFO_REPORT="spill", **HOST)
        self.assertEqual(self.info(lines), [(106, 114)])

    @each
    def test_all_of_the_host_for_one_device(self, name):
        lines = self.ask(name, "device:0 info", SPILL_MEMINFO_REPORT="spill", SPILL_SIM_DEVICES="1", **LIMITS, **HOST)
        self.assertEqual(self.info(lines), [(140, 140)])

    def test_managed_memory_that_nobody_touched_is_taken(self):
        """The kernel still has it, and it is not to be promised twice."""
        lines = self.ask("meminfo_driver", "device:0 info alloc:1000 info", SPILL_MEMINFO_REPORT="spill", SPILL_OOM_CHAIN="managed",
                         SPILL_SIM_DEVICES="1", SPILL_HOST_LIMIT="1000TiB", SPILL_HOST_RESERVE="0", SPILL_MANAGED_PREFETCH_BELOW="0", SPILL_DEVICE_LIMIT="40MiB")
        (_, total), (free, same) = self.info(lines)
        managed, = [record["managed_bytes"] / MIB for record in decided(self.checked_records())]
        self.assertEqual((managed, same), (1000, total))
        self.assertLessEqual(free, total - managed)

    def test_our_own_failures_are_not_the_programs(self):
        """A question of ours that fails behind its call: no last error, by either rule of HIP's."""
        for rule in ("sticky", "overwritten"):
            lines = self.ask("meminfo_hip_5", "device:0 info", SPILL_MEMINFO_REPORT="spill", SPILL_SIM_LAST_ERROR=rule,
                             SPILL_SIM_FAIL="hipDeviceGetAttribute:1+", **HOST)
            self.assertEqual(lines[1][1], "0")
            self.assertEqual(lines[1][-1], "0")

    def test_with_memory_that_moves(self):
        """What has left the device is free there and taken on the host: the figures are those of the exit line."""
        for report in ("limit", "spill"):
            lines = self.ask("meminfo_driver", "device:0 alloc:32 alloc:24 info", SPILL_MEMINFO_REPORT=report, SPILL_SIM_DEVICES="1",
                             SPILL_MOVABLE_ENABLE="on", SPILL_MOVABLE_CHUNK="2MiB", SPILL_DEVICE_RESERVE="0", **LIMITS, **HOST)
            records = self.checked_records()
            live = {kind: records[-1]["live"][f"{kind}_bytes"] / MIB for kind in ("device", "host")}
            self.assertEqual(live, {"device": 40, "host": 16})
            self.assertIn("move", [record["kind"] for record in records])
            self.assertEqual(self.info(lines), [(0, 40)] if report == "limit" else [(84, 140)])

    @each
    def test_what_cannot_spill_is_not_promised(self, name):
        for variables in ({"SPILL_OOM_CHAIN": ""}, {"SPILL_OOM_CHAIN": "trim"}, {"SPILL_OOM_CHAIN": "trim, demote"},
                          {"SPILL_HOST_LIMIT": "0"}, {"SPILL_HOST_RESERVE": "1000TiB"}):
            lines = self.ask(name, "device:0 alloc:8 info", SPILL_MEMINFO_REPORT="spill", **{**LIMITS, **HOST, **variables})
            self.assertEqual(self.info(lines), [(32, 40)], variables)


class ByAddress(Meminfo):
    def test_by_hips_own_look_up(self):
        """ROCm 5's and ROCm 6's structure by the same name, and each by its own."""
        lines = self.ask("meminfo_hip_6", "device:0 proc alloc:8", SPILL_MEMINFO_REPORT="limit", **LIMITS)
        self.assertEqual(lines[1:-1], [["proc", "0", str(40 * MIB)]] * 4)
        self.assertEqual([record for record in self.checked_records() if record["kind"] == "note"], [], "no form is unknown")
        lines = self.ask("meminfo_hip_6", "device:0 proc", **LIMITS)
        self.assertEqual(lines[1:], [["proc", "0", str(64 * MIB)]] * 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)

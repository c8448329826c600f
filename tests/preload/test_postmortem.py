"""What people are told at once when out of memory surfaces: who holds what, what refused, and what would have helped."""
import json
import re
import signal
import subprocess
import unittest

from harness import KERNELS, MIB, PROGRAMS, SMALL, apart, held, program
from scripted import FULL, MOVED, ScriptCase


def size(count):
    """As spill_text_size."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            hundredths = (count * 100 + (1 << shift) // 2) >> shift
            return f"{hundredths // 100}.{hundredths % 100:02} {unit}"
    return f"{count} B"


def sums(of):
    parts = [f"{size(of[kind + '_bytes'])} {kind}" for kind in ("device", "host", "managed") if of[kind + "_bytes"]]
    return ", ".join(parts) or "nothing"


def together(of):
    return sum(of[kind + "_bytes"] for kind in ("device", "host", "managed"))


class PostMortem(ScriptCase):
    movable = "off"

    def ooms(self):
        return [record for record in self.checked_records() if record["kind"] == "oom"]

    def advice(self):
        """What `spill report` says would have helped, of each out of memory."""
        return [oom["advice"] for oom in self.reported()["ooms"]]

    def block(self, done):
        """The only one, as its lines."""
        rest, blocks = apart(done.stderr)
        self.assertEqual(len(blocks), 1, done.stderr)
        self.assertNotIn("out of memory", rest)
        self.assertLessEqual(blocks[0].count("\n"), 20)
        return blocks[0].splitlines()

    def expected(self, oom, spilled, program="script"):
        """The block of a line of the log."""
        used = oom["total"] - oom["free"]
        lines = [f"spill: {program}: out of memory: {size(oom['bytes'])} of device {oom['dev']} asked by {oom['caller']} ({oom['api']})",
                 f"spill:   spilled before: {spilled}",
                 f"spill:   this process holds {sums(oom['live'])}; by place: " + ", ".join(
                     f"{place['place']} {size(together(place))} in {place['count']}" for place in oom["places"]) + "; by caller:"]
        lines += [f"spill:     {size(together(caller))}  {caller['caller']}  in {caller['count']} "
                  f"allocation{'' if caller['count'] == 1 else 's'}: {sums(caller)}" for caller in oom["callers"]]
        lines += [f"spill:   device {oom['dev']}: {size(oom['free'])} free of {size(oom['total'])}; {size(oom['ours'])} held by this "
                  f"process; {size(used - oom['ours'])} held by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi shows whose)"]
        refused = f"spill:   refused by {oom['refused_by']} (rule {oom['rule']})"
        if "refusal" in oom:
            refused += ": {} allowed, {} in use, {} more asked".format(*(size(oom["refusal"][key]) for key in ("limit", "held", "asked")))
        return lines + [refused, "spill:   tried " + ", ".join(f"{step['place']}: {step['error']}" for step in oom["tried"]),
                        f"spill:   what would have helped: {self.advice()[0]}", f"spill:   log {self.log}"]

    def test_the_first_is_told(self):
        done = self.script("retain:0 alloc:a:4m:5 alloc:b:4m alloc:b:8m", SPILL_OOM_CHAIN="")
        first, *others = self.ooms()
        self.assertEqual(len(others), 2)
        self.assertEqual(self.block(done), self.expected(first, "nothing"))

    def check_groups(self, records, callers, places):
        """The first out of memory has the sums of what was live then, by caller and by place, of so many; most first."""
        at = [record["kind"] for record in records].index("oom")
        live = {record["seq"]: record for record in records[:at] if record["kind"] == "alloc"}
        for record in records[:at]:
            if record["kind"] == "free":
                del live[record["seq"]]
        for group, key, count in (("callers", "caller", callers), ("places", "place", places)):
            summed = {}
            for record in live.values():
                of = summed.setdefault(record[key], {"count": 0, "device_bytes": 0, "host_bytes": 0, "managed_bytes": 0})
                of["count"] += 1
                for kind, bytes_ in held(record).items():
                    of[kind + "_bytes"] += bytes_
            told = records[at][group]
            self.assertEqual({one[key]: {name: one[name] for name in one if name != key} for one in told}, summed)
            self.assertEqual(len(told), count)
            self.assertEqual([together(one) for one in told], sorted(map(together, told), reverse=True))

    def test_who_holds_what(self):
        """What was freed does not count, and what the device is used for besides is told as such."""
        done = self.script("retain:0 alloc:a:4m:2 alloc:b:2m:1 free:b alloc:c:2m:1 alloc:d:4m:9", SPILL_HOST_LIMIT="9MiB",
                           SPILL_SIM_CONTEXT="1MiB")
        oom, = self.ooms()
        story = "up to 8.00 MiB was in host memory; at most 18.00 MiB was wanted at once, and at most 10.00 MiB was on the card; the time that kernels lost by reading it there is not known (movable.follow = off)\nspill:     8.00 MiB host, in 2 of 6 allocations"
        self.assertEqual("\n".join(self.block(done)), "\n".join(self.expected(oom, story)))
        self.assertEqual((oom["ours"], oom["total"] - oom["free"] - oom["ours"]), (10 * MIB, 2 * MIB))
        self.check_groups(self.records(), 1, 2)

    def test_other_devices_are_told_apart(self):
        """Two of 6 MiB on device 0 are not what device 1 lacks: they are in the sum, and in nobody's share."""
        done = self.script("retain:0 alloc:a:6m:2 retain:1 alloc:b:4m:1 alloc:c:12m", SPILL_OOM_CHAIN="", SPILL_SIM_DEVICES="2")
        oom, = self.ooms()
        self.assertEqual((oom["dev"], oom["live"]["device_bytes"]), (1, 16 * MIB))
        self.assertEqual([(len(oom[name]), oom[name][0]["device_bytes"]) for name in ("places", "callers")], [(1, 4 * MIB)] * 2)
        self.assertEqual([holder["bytes"] for holder in oom["holders"]], [4 * MIB])
        lines = self.block(done)
        self.assertIn("spill:   this process holds 16.00 MiB device (12.00 MiB on other devices); by place: device 4.00 MiB in 1; by caller:",
                      lines)
        self.assertFalse([line for line in lines if line.endswith("  others")])
        self.assertRegex(lines[-2], r"2\.00 MiB less in use on the device, to get past this request .*: script\+0x[0-9a-f]+ holds 4\.00 MiB in one piece$")

    def test_all_is_on_other_devices(self):
        done = self.script("retain:0 alloc:a:6m:2 retain:1 alloc:b:20m", SPILL_OOM_CHAIN="", SPILL_SIM_DEVICES="2")
        oom, = self.ooms()
        self.assertEqual((oom["dev"], oom["live"]["device_bytes"], "places" in oom), (1, 12 * MIB, False))
        lines = self.block(done)
        self.assertIn("spill:   this process holds 12.00 MiB device (12.00 MiB on other devices)", lines)

    def test_figures_are_of_what_refused(self):
        """Demote, tried behind the host, is refused by the same option, with figures of its own."""
        def run(limit):
            self.log.unlink(missing_ok=True)
            return self.script("retain:0 alloc:a:4m:3 alloc:b:8m", **MOVED, SPILL_HOST_LIMIT=limit, SPILL_OOM_CHAIN="host, demote")
        lines = self.block(run("3MiB"))
        self.assertIn("spill:   refused by host.limit (rule default): 3.00 MiB allowed, 0 B in use, 8.00 MiB more asked", lines)
        self.assertIn("what would have helped: host.limit = 8MiB at least (it is 3.00 MiB; more if the program goes on to ask)", lines[-2])
        self.good(run("8MiB"))

    def test_by_log_stderr(self):
        for how, times in (("first", 1), ("all", 3), ("off", 0)):
            with self.subTest(how):
                self.log.unlink(missing_ok=True)
                done = self.script("retain:0 alloc:a:4m:5 alloc:b:4m alloc:b:8m", SPILL_OOM_CHAIN="", SPILL_LOG_STDERR=how)
                self.assertEqual(len(self.ooms()), 3)
                rest, blocks = apart(done.stderr)
                self.assertEqual((len(blocks), "out of memory: " in rest), (times, False))

    def test_switched_off_nothing_is_told(self):
        self.assertEqual(self.script("retain:0 alloc:a:4m:5", SPILL="0").stderr, "")

    def test_observed_it_says_what_would_have_been(self):
        done = self.script("retain:0 alloc:a:4m:5", SPILL_MODE="observe")
        lines = self.block(done)
        self.assertIn("spill:   what would have helped: spill.mode = spill: it would have been tried as split", lines)
        self.assertEqual(lines, self.expected(self.ooms()[0], "nothing"))

    def test_without_a_log(self):
        lines = self.block(self.script("retain:0 alloc:a:4m:5", SPILL_OOM_CHAIN="", SPILL_LOG="off"))
        self.assertEqual(lines[-1], "spill:   no log is written (log.path, log.level)")
        self.assertIn("spill:   tried device: CUDA_ERROR_OUT_OF_MEMORY", lines)

    def test_on_purpose_is_not_told(self):
        """An allocator that asks again sees two failures, and nobody else hears of them; the one that is the end is told."""
        command = [str(PROGRAMS / "retrier"), str(PROGRAMS / "libc10_cuda.so")]
        words = "take:a:4 take:b:12 take:c:12 give:b give:c take:d:20 take:e:16"
        done = self.run_program([*command, *words.split()], vram="32MiB")
        self.assertEqual([oom["refused_by"] for oom in self.ooms()], ["oom.honest_first"] * 2)
        self.assertNotIn("out of memory", done.stderr)
        self.log.unlink()
        done = self.run_program([*command, *words.split()], vram="32MiB", SPILL_HOST_LIMIT="1MiB", SPILL_LOG_STDERR="all")
        refusals = [oom["refused_by"] for oom in self.ooms()]
        self.assertEqual(refusals.count("host.limit"), len(apart(done.stderr)[1]))
        self.assertGreater(len(refusals), refusals.count("host.limit"))

    def helps(self, words, variable, option, **limits):
        """With what the block says would have helped, nothing is out of memory; with a MiB less it is again."""
        done = self.script(words, **limits)
        help_line, = [line for line in self.block(done) if "would have helped" in line]
        amount = re.search(rf"helped: {option} = (\d+)MiB at least \(it is", help_line)
        self.assertTrue(amount, help_line)
        for less, surfaced in ((0, 0), (1, 1)):
            self.log.unlink()
            done = self.script(words, **limits | {variable: f"{int(amount[1]) - less}MiB"})
            self.assertEqual((len(self.ooms()), len(apart(done.stderr)[1])), (surfaced, surfaced), done.stderr)

    def test_what_would_have_helped_helps(self):
        self.helps(FULL, "SPILL_HOST_LIMIT", "host.limit", SPILL_HOST_LIMIT="5MiB")
        self.log.unlink()
        self.helps("retain:0 alloc:a:4m:3", "SPILL_DEVICE_LIMIT", "device.limit", SPILL_DEVICE_LIMIT="9MiB", SPILL_OOM_CHAIN="")

    def test_by_every_way_in(self):
        for name in ("prog_runtime", "prog_driver_dlsym", "prog_hip"):
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                done = self.run_program(program(name), vram=SMALL, SPILL_OOM_CHAIN="")
                oom = self.ooms()[0]
                self.assertEqual(oom["bytes"], 6 * MIB)
                self.assertEqual(self.block(done), self.expected(oom, "nothing", name))
                self.check_groups(self.records(), len(oom["callers"]), len(oom["places"]))
                self.assertGreater(len(oom["callers"]), 1)


class Ending(ScriptCase):
    """log.stderr = all: the totals at the end, which are those of the log to the byte."""

    movable = "off"
    WORDS = "retain:0 alloc:a:4m:5 alloc:b:1m free:b alloc:c:20m free:a alloc:c:3m"

    def endings(self, stderr):
        return re.findall(r"^spill: [^\n]*: ended \([^\n]*\n(?:spill:   [^\n]*\n)+", stderr, re.MULTILINE)

    def totals(self, block):
        """As spill report --json has them."""
        counts = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", block.split("spill:   allocs")[1].split("\n")[0])}
        counts["allocs"] = int(re.search(r"allocs (\d+), frees", block)[1])
        for name, *figures in re.findall(r"  (live|peak|spilled) bytes: device (\d+), host (\d+), managed (\d+)", block):
            counts[name] = dict(zip(("device_bytes", "host_bytes", "managed_bytes"), map(int, figures)))
        counts["away"] = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", block.split("spill:   away: ")[1].split("\n")[0])}
        return counts

    def check_end(self, done, how):
        block, = self.endings(done.stderr)
        run = self.reported()
        self.assertEqual(self.totals(block), run["totals"])
        self.assertEqual((run["differences"], run["how"]), ([], how))
        self.assertRegex(block, rf"^spill: \w+: ended \({how}\); ")
        story = "; ".join(filter(None, (run["story"][name] for name in ("size", "cost", "in_place"))))
        refused = f"; {run['totals']['ooms']} refused as out of memory, " if run["totals"]["ooms"] else "\n"
        self.assertIn(f"; {story}{refused}", block)
        self.assertTrue(block.endswith(f"spill:   log {self.log}\n"))
        self.assertTrue(done.stderr.endswith(block), "it is the last that is told")
        return block, run

    def test_the_figures_are_those_of_the_log(self):
        block, run = self.check_end(self.script(self.WORDS, SPILL_LOG_STDERR="all", SPILL_DEVICE_LIMIT="13MiB"), "exit")
        totals = run["totals"]
        self.assertGreater(min(totals[name] for name in ("allocs", "frees", "spills")), 0)
        by_reason = {row["name"]: row["spilled"] for row in run["by_reason"] if row["spilled"]}
        words = {"oom": "because the card was full", "limit": "because of device.limit or a rule's cap", "rule": "because of a rule's place"}
        self.assertIn("spill:   why: " + ", ".join(f"{size(by_reason[name])} {words[name]}" for name in words if name in by_reason) + "\n", block)

    def test_with_moves(self):
        block, run = self.check_end(self.script(self.WORDS, SPILL_LOG_STDERR="all", **MOVED), "exit")
        self.assertGreater(run["totals"]["demotions"], 0)
        self.assertIn(f"moved to the host {size(run['totals']['demoted_bytes'])} in {run['totals']['demotions']} move", block)

    def test_with_lines_left_out(self):
        _, run = self.check_end(self.script(self.WORDS, SPILL_LOG_STDERR="all", SPILL_LOG_MAX="0"), "exit")
        self.assertGreater(run["left_out"], 0)

    def test_every_end(self):
        for how, word in (("abort", "abort"), ("_exit", "_exit"), ("quick_exit", "quick_exit")):
            with self.subTest(how):
                self.log.unlink(missing_ok=True)
                done = self.run_in([str(PROGRAMS / "process"), how], self.environment(SPILL_LOG_STDERR="all"))
                self.assertEqual(len(self.endings(done.stderr)), 1, done.stderr)
                self.assertIn(f"ended ({word})", done.stderr)

    def test_only_if_asked_and_only_with_a_gpu(self):
        for how in ("first", "off"):
            self.assertEqual(self.endings(self.script(self.WORDS, SPILL_LOG_STDERR=how).stderr), [])
        done = self.run_in(["/bin/true"], self.environment(SPILL_LOG_STDERR="all"))
        self.assertEqual(done.stderr, "")

    def test_without_a_log(self):
        block, = self.endings(self.script(self.WORDS, SPILL_LOG_STDERR="all", SPILL_LOG="off").stderr)
        self.assertIn(" was in host memory; at most ", block)
        self.assertTrue(block.endswith("spill:   no log is written (log.path, log.level)\n"))

    def test_killed(self):
        """No end is told, and the lines have what the program itself saw succeed."""
        path = self.folder / "out"
        with open(path, "w", encoding="utf-8") as out:
            killer = self.folder / "killer"
            killer.write_text("#!/bin/sh\nof=$PPID\n"
                              "while [ \"$(cat /proc/$of/comm)\" != script ]; do of=$(cut -d' ' -f4 /proc/$of/stat); done\n"
                              "kill -9 $of\n", encoding="utf-8")
            killer.chmod(0o755)
            command = [str(PROGRAMS / "script"), KERNELS, *f"retain:0 alloc:a:4m:5 free:a alloc:b:2m:9 child:{killer}".split()]
            done = subprocess.run(command, env=self.environment(SPILL_LOG_STDERR="all"), stdout=out, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertEqual(self.endings(done.stderr), [])
        totals = self.reported()["totals"]
        self.assertEqual((totals["allocs"], totals["frees"], totals["ooms"]), (14, 5, 0))
        self.assertEqual(sum(totals["live"].values()), 9 * 2 * MIB)

    def test_killed_behind_a_request_that_made_room(self):
        """The line that tells what was done for the request is in the log, although the request found room in the end."""
        done = self.script("retain:0 alloc:a:4m:4 child:kill${IFS}-9${IFS}$PPID", **MOVED)
        self.assertEqual(done.returncode, -signal.SIGKILL)
        last = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()][-1]
        self.assertEqual((last["kind"], last["reason"]), ("alloc", "fits"))
        self.assertEqual([tried["place"] for tried in last["tried"]], ["device", "trim"])


if __name__ == "__main__":
    unittest.main()

"""log.level = all: memory that is small or in stream order and fits is summed by call site and second, and every total is exact."""
import json
import signal
import subprocess
import unittest

from harness import KERNELS, MIB, PROGRAMS, SPILL, Case, decided, freed, report

TOTALS = ("allocs", "frees", "spills", "ooms", "live", "peak", "spilled")
# Of sums.c: large plain memory is taken once in so many rounds.
STEP = 2000
KIB = 1 << 10
LARGE = 3 * MIB


class Sums(Case):
    level = None  # the default
    movable = "off"
    vram = "512MiB"

    def sums(self, *words, status=0, **variables):
        """The records of a run of sums.c, and what each of its processes printed: pid, allocations, frees, bytes that are left."""
        self.log.unlink(missing_ok=True)
        done = self.run_program([str(PROGRAMS / "sums"), *map(str, words)], **variables)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]

    def count(self, records, kind):
        return sum(1 for record in records if record["kind"] == kind)

    def test_a_loop_is_a_few_lines(self):
        """One line a second for the only call site, however long the loop takes; the rest is the large memory between."""
        self.sums(1, 100000)
        records = self.checked_records()
        large = 100000 // STEP
        self.assertEqual((self.count(records, "alloc"), self.count(records, "free")), (large, large))
        self.assertLessEqual(self.count(records, "sum"), records[-1]["t"] + 1)
        self.assertGreater(self.count(records, "sum"), 0)
        sums = [record for record in records if record["kind"] == "sum"]
        allocs = [record for record in sums if "alloc" in record]  # a line that is due may come between an allocation and its free
        self.assertEqual(sum(record["alloc"]["count"] for record in allocs), 100000)
        self.assertEqual({record["api"] for record in sums}, {"cuMemAllocAsync"})
        self.assertTrue(all(record["caller"].startswith("sums+0x") for record in sums))
        self.assertEqual(max(record["largest"]["bytes"] for record in allocs), 2 * MIB)
        self.assertEqual({record["bytes"] for record in records if record["kind"] == "alloc"}, {LARGE})
        # Without the large memory the whole log is smaller than the lines of 40 allocations.
        self.sums(1, STEP - 1)
        lines = self.log.read_text(encoding="utf-8").splitlines()[1:]
        self.assertLess(sum(map(len, lines)), 8192)

    def test_the_same_totals_as_with_a_line_each(self):
        """One thread does the same each time, so the peaks are equal, too; and all of the report that does not list single ones."""
        runs = {}
        for level in ("each", "all"):
            (_, allocs, frees, left), = self.sums(1, 10000, SPILL_LOG_LEVEL=level)
            exit_line = self.checked_records()[-1]
            self.assertEqual((exit_line["allocs"], exit_line["frees"]), (allocs, frees))
            self.assertEqual(exit_line["live"]["device_bytes"], left)
            replay = json.loads(subprocess.run([SPILL, "replay", "--json", self.log], capture_output=True, text=True, timeout=60,
                                               check=True).stdout)["runs"][0]
            runs[level] = exit_line, self.reported(), replay
        (each, each_run, each_replay), (summed, summed_run, summed_replay) = runs["each"], runs["all"]
        self.assertEqual([device["peak"] for device in each_replay["devices"]], [device["peak"] for device in summed_replay["devices"]])
        self.assertEqual(each_replay["devices"][0]["peak"]["device_bytes"], each["peak"]["device_bytes"])
        self.assertEqual({name: each[name] for name in TOTALS}, {name: summed[name] for name in TOTALS})
        for name in ("totals", "devices", "demoted", "promoted", "by_caller"):
            self.assertEqual(each_run[name], summed_run[name], name)
        for name in ("by_place", "by_rule", "by_reason"):  # these mix call sites, whose peaks are not of one moment
            without = [[{key: row[key] for key in row if key != "peak"} for row in run[name]] for run in (each_run, summed_run)]
            self.assertEqual(*without, name)

    def test_threads(self):
        (_, allocs, frees, left), = self.sums(8, 10000)
        exit_line = self.checked_records()[-1]
        self.assertEqual((exit_line["allocs"], exit_line["frees"], exit_line["live"]["device_bytes"]), (allocs, frees, left))
        self.assertEqual(allocs, 8 * (10000 + 10000 // STEP))

    def test_a_fork(self):
        """Each process has a log of its own, and begins with no sums."""
        folder = self.folder / "logs"
        folder.mkdir()
        printed = self.sums(4, 3000, "fork", SPILL_LOG=str(folder / "%p.jsonl"))
        (parent,) = {line[0] for line in printed if [one[0] for one in printed].count(line[0]) == 2}
        for pid in {line[0] for line in printed}:
            allocs, frees, left = (sum(line[at] for line in printed if line[0] == pid) for at in (1, 2, 3))
            exit_line = self.checked_records(folder / f"{pid}.jsonl")[-1]
            self.assertEqual((exit_line["allocs"], exit_line["frees"], exit_line["live"]["device_bytes"]), (allocs, frees, left))
        self.assertEqual(len(list(folder.iterdir())), 2, f"the parent {parent} and one child")

    def test_an_out_of_memory_follows_all_sums(self):
        """What the lines before it say is what it says: the holders and the live bytes."""
        (_, _, _, left), = self.sums(1, 5000, "oom", SPILL_OOM_CHAIN="")
        records = self.records()
        at = [record["kind"] for record in records].index("oom")
        held = 0
        for record in records[:at]:
            if record["kind"] in ("alloc", "free"):
                held += record["bytes"] * (1 if record["kind"] == "alloc" else -1)
            if record["kind"] == "sum":
                held += record.get("alloc", {}).get("device_bytes", 0) - record.get("free", {}).get("device_bytes", 0)
        self.assertEqual((records[at]["live"]["device_bytes"], held), (left, left))
        self.assertEqual(sum(holder["bytes"] for holder in records[at]["holders"]), left)
        self.assertEqual(records[at]["callers"][0]["count"], 3)
        run = self.reported()
        self.assertEqual(run["devices"][0]["fit"]["refused"], 0, "it fits nowhere")

    def test_a_killed_process(self):
        """The sums since the last line are lost, and nothing else is: the figures cover the lines."""
        self.sums(1, 400000, "kill", status=-signal.SIGKILL)
        records = self.records()
        (run,), done = report(self.log)
        self.assertEqual((done.stderr, run["exited"], run["unknown_frees"]), ("", False, 0))
        self.assertEqual(run["totals"]["allocs"], self.count(records, "alloc")
                         + sum(record.get("alloc", {"count": 0})["count"] for record in records if record["kind"] == "sum"))
        self.assertGreater(self.count(records, "alloc"), 0, "routine lines are in the file after a while")

    def test_log_max(self):
        """Sums that find no room are in the drop line."""
        (_, allocs, frees, left), = self.sums(2, 5000, SPILL_LOG_MAX="0")
        records = self.checked_records()
        self.assertEqual([record["kind"] for record in records], ["start", "note", "drop", "exit"])
        self.assertEqual((records[2]["alloc"]["count"], records[2]["free"]["count"]), (allocs, frees))
        self.assertEqual(records[2]["alloc"]["device_bytes"] - records[2]["free"]["device_bytes"], left)

    def test_what_spills_has_a_line(self):
        """Of memory in stream order on a full device: what fits is summed, and each spill and its free have lines."""
        words = "keep alloc:a:1m:30 alloc:b:8k:20 fill:a fill:b verify:a verify:b sync free:a free:b sync"
        self.all_right(self.run_program([str(PROGRAMS / "ordered"), KERNELS, *words.split()], vram="20MiB",
                                        SPILL_OOM_HONEST_FIRST="off"))
        records = self.checked_records()
        lines = {record["seq"]: record for record in decided(records)}
        self.assertGreater(records[-1]["spills"], 0)
        self.assertTrue(all(record["tried"] for record in lines.values()))
        self.assertEqual(sum(1 for record in lines.values() if record["reason"] == "oom"), records[-1]["spills"])
        self.assertEqual({record["seq"] for record in freed(records)}, set(lines))
        summed = sum(record["alloc"]["count"] for record in records if record["kind"] == "sum" and "alloc" in record)
        self.assertEqual(summed + len(lines), 50)

    def test_what_fits_only_after_memory_was_given_back_has_a_line(self):
        """Of small plain memory, while the pool keeps 64 MiB that nobody uses."""
        words = "keep alloc:a:20m:2 fill:a free:a sync plain:b:1000k:12 fill:b verify:b sfree:b sync"
        self.all_right(self.run_program([str(PROGRAMS / "ordered"), KERNELS, *words.split()], SPILL_DEVICE_LIMIT="66MiB"))
        records = self.checked_records()
        (line,) = decided(records)
        self.assertEqual((line["reason"], line["tried"][0]["place"]), ("fits", "device"))
        self.assertEqual([record["seq"] for record in freed(records)], [line["seq"]])

    def test_plain_memory_by_size(self):
        """Below 1 MiB it is summed. The level each has a line for all."""
        for level, lines in (("all", {MIB}), ("each", {MIB - KIB, MIB})):
            self.log.unlink(missing_ok=True)
            command = [str(PROGRAMS / "ordered"), KERNELS, "plain:a:1023k", "plain:b:1m", "sfree:a", "sfree:b"]
            self.all_right(self.run_program(command, SPILL_LOG_LEVEL=level))
            records = self.checked_records()
            self.assertEqual({record["bytes"] for record in decided(records)}, lines, level)

    def test_observe_has_lines_for_what_would_be_elsewhere(self):
        policy = self.folder / "rule.conf"
        policy.write_text("[rule mine]\nsize = ..8KiB\nplace = host\n", encoding="utf-8")
        self.all_right(self.run_program([str(PROGRAMS / "ordered"), KERNELS, "alloc:a:8k:3", "alloc:b:9k:3", "sync"],
                                        SPILL_POLICY=policy, SPILL_MODE="observe"))
        records = self.checked_records()
        self.assertEqual([record["would"] for record in decided(records)], ["host"] * 3)
        self.assertEqual(sum(record["alloc"]["count"] for record in records if record["kind"] == "sum"), 3)


if __name__ == "__main__":
    unittest.main()

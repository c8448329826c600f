"""log.metrics: the figures of the file are those of the log, a reader never sees half of it, and it never harms the program."""
import os
import pathlib
import re
import stat
import time
import unittest

from harness import MIB, PROGRAMS, SPILL, file_limit
from scripted import FULL, MOVED
from test_top import TopCase

import prometheus_text  # the imports before have made its folder known, and that of python3-yaml
import yaml

PLACES = ("device", "host", "managed")


class MetricsCase(TopCase):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "spill.prom"

    def preloaded(self):
        return super().preloaded() | {"SPILL_LOG_METRICS": str(self.file)}

    @staticmethod
    def read(path):
        return prometheus_text.read(path.read_text(encoding="utf-8"))

    @staticmethod
    def value(families, name, /, **labels):
        """The sum of the samples that have these labels."""
        found = [value for have, value in families[name].items() if set(labels.items()) <= have]
        assert found, (name, labels)
        return sum(found)

    def same_as_exit(self, families, last):
        """The figures of the exit line."""
        for place in PLACES:
            self.assertEqual(self.value(families, "spill_memory_bytes", place=place), last["live"][f"{place}_bytes"])
        for place in PLACES[1:]:
            self.assertEqual(self.value(families, "spill_spilled_bytes_total", place=place), last["spilled"][f"{place}_bytes"])
        for name, member in (("allocations", "allocs"), ("frees", "frees"), ("spills", "spills"), ("refused_requests", "ooms")):
            self.assertEqual(self.value(families, f"spill_{name}_total"), last[member])
        for direction, moves, moved in (("to_host", "demotions", "demoted_bytes"), ("to_device", "promotions", "promoted_bytes")):
            self.assertEqual(self.value(families, "spill_moves_total", direction=direction), last[moves])
            self.assertEqual(self.value(families, "spill_moved_bytes_total", direction=direction), last[moved])
        self.assertEqual(round(self.value(families, "spill_held_up_seconds_total") * 1e6), last["away"]["moves_us"])


class Figures(MetricsCase):
    def test_a_run_that_spills(self):
        self.good(self.script("retain:0 alloc:a:4m:2 alloc:b:4m:3 free:a alloc:c:40k:3 free:c"))
        families, records = self.read(self.file), self.checked_records()
        self.assertGreater(records[-1]["spills"], 0)
        self.same_as_exit(families, records[-1])
        for place in PLACES:
            self.assertEqual(self.value(families, "spill_memory_peak_bytes", place=place), records[-1]["peak"][f"{place}_bytes"])
        self.assertEqual(self.value(families, "spill_off_device_bytes"), records[-1]["live"]["host_bytes"])
        self.assertEqual(self.value(families, "spill_process_running"), 0, "the last file says that the process has ended")
        self.assertEqual(self.value(families, "spill_held_up_seconds_total"), 0)
        start = records[0]
        self.assertEqual(self.value(families, "spill_info", program="script", pid=str(start["pid"]), version=start["version"],
                                    mode="spill", backend="cuda"), 1)
        self.assertLess(abs(self.value(families, "spill_process_start_time_seconds") - time.time()), 3600)
        device, = start["devices"]
        self.assertEqual(self.value(families, "spill_device_info", device="0", name=device["name"], uuid=device["uuid"]), 1)
        self.assertEqual(self.value(families, "spill_device_capacity_bytes", device="0"), device["bytes"])
        self.assertNotIn("spill_device_limit_bytes", families, "there is none")

    def test_a_run_that_moves(self):
        self.good(self.script("retain:0 alloc:a:4m:3 alloc:b:4m:2 free:b free:a", **MOVED))
        families, records = self.read(self.file), self.checked_records()
        self.assertGreater(records[-1]["demotions"], 0)
        self.same_as_exit(families, records[-1])
        self.assertGreater(self.value(families, "spill_held_up_seconds_total", device="0"), 0)
        self.assertEqual(self.value(families, "spill_off_device_peak_bytes"), records[-1]["away"]["peak_bytes"])

    def test_refusals_and_a_limit(self):
        self.script("retain:0 alloc:a:4m:3 alloc:b:4m:1", SPILL_OOM_CHAIN="", SPILL_DEVICE_LIMIT="8MiB")
        families = self.read(self.file)
        self.assertEqual(self.value(families, "spill_device_limit_bytes", device="0"), 8 * MIB)
        self.assertEqual(self.value(families, "spill_refused_requests_total"), 2)

    def test_two_devices(self):
        self.good(self.script("retain:0 alloc:a:4m:2 retain:1 alloc:b:4m:1 free:b", SPILL_SIM_DEVICES="2"))
        families = self.read(self.file)
        self.assertEqual([self.value(families, "spill_memory_bytes", device=n, place="device") for n in "01"], [8 * MIB, 0])
        self.assertEqual([self.value(families, "spill_allocations_total", device=n) for n in "01"], [2, 1])

    def test_without_a_log(self):
        self.good(self.script(FULL, SPILL_LOG="off"))
        self.assertEqual(self.value(self.read(self.file), "spill_spills_total"), 2)
        self.assertFalse(self.log.exists())

    def test_observed(self):
        self.script("retain:0 alloc:a:4m:2", SPILL_MODE="observe")
        self.assertEqual(self.value(self.read(self.file), "spill_info", mode="observe"), 1)

    def test_names_of_files(self):
        folder = self.folder / "textfile"
        folder.mkdir()
        for pattern in (folder, f"{folder}/%e-%p.prom"):
            self.good(self.script(FULL, SPILL_LOG_METRICS=pattern))
            path, = folder.iterdir()
            self.assertRegex(path.name, r"^script-[0-9]+\.prom$")
            path.unlink()


class Alerts(MetricsCase):
    def test_each_figure_of_the_alerts_is_in_the_file(self):
        self.good(self.script("retain:0 alloc:a:4m:1", SPILL_DEVICE_LIMIT="8MiB"))
        families, tree = self.read(self.file), pathlib.Path(__file__).parents[2]
        alerts = yaml.safe_load((tree / "docs/examples/spill-alerts.yml").read_text())
        named = {name for rule in alerts["groups"][0]["rules"] for name in re.findall(r"\bspill_\w+", rule["expr"])}
        self.assertGreater(len(named), 2)
        self.assertLessEqual(named, set(families))
        section = (tree / "docs/operators.md").read_text().split("### Live figures")[1].split("\n### ")[0]
        described = {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`(spill_\w+)`", line)}
        self.assertEqual(described, set(families))


class Live(MetricsCase):
    def wait_for(self, name, value, **labels):
        """Until the figure is in the file. A test that never gets it fails, and so ends the program that it has started."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            families = self.read(self.file) if self.file.exists() else {}
            if families and self.value(families, name, **labels) == value:
                return families
            time.sleep(0.01)
        return self.fail(f"{name} never was {value}")

    def test_an_idle_program_has_its_last_figures(self):
        """It makes no call after the change, and the file changes all the same."""
        running = self.start("retain:0 alloc:a:4m:1 pause:1 alloc:b:4m:4 pause:2 free:b pause:3")
        self.reach(1)
        self.wait_for("spill_memory_bytes", 4 * MIB, place="device")
        old = os.open(self.file, os.O_RDONLY)
        self.addCleanup(os.close, old)
        before = os.pread(old, 1 << 20, 0)
        self.go(1)
        self.reach(2)
        families = self.wait_for("spill_spills_total", 2)
        self.assertEqual(self.value(families, "spill_process_running"), 1)
        self.assertEqual(os.pread(old, 1 << 20, 0), before, "the file is replaced: a reader of the old one is not disturbed")
        self.assertNotEqual(os.fstat(old).st_ino, self.file.stat().st_ino)
        self.go(2)
        self.reach(3)
        self.wait_for("spill_frees_total", 4)
        self.go(3)
        running.communicate()
        self.same_as_exit(self.read(self.file), self.checked_records()[-1])
        self.assertEqual([path.name for path in self.folder.glob("spill.prom*")], ["spill.prom"])

    def test_it_is_whole_whenever_it_is_read(self):
        running = self.start("retain:0 " + "alloc:a:4m:4 free:a " * 20)
        names = None
        reads = 0
        while running.poll() is None or not reads:
            if self.file.exists():
                families = self.read(self.file)
                names = names or set(families)
                self.assertEqual(set(families), names)
                reads += 1
        self.assertEqual(self.value(self.read(self.file), "spill_frees_total"), 80)

    def test_others_may_read_it_and_nobody_else_write(self):
        self.good(self.script(FULL, how={"umask": 0o077}))
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o644)

    def test_a_child_has_its_own(self):
        folder = self.folder / "textfile"
        folder.mkdir()
        command = [str(PROGRAMS / "top_fork"), str(SPILL)]
        self.run_in(command, self.environment(SPILL_LOG=str(self.folder / "%p.jsonl"), SPILL_LOG_METRICS=f"{folder}/"))
        logs = sorted(path.stem for path in self.folder.glob("*.jsonl"))
        self.assertEqual(sorted(path.stem.rpartition("-")[2] for path in folder.iterdir()), logs)


class Harmless(MetricsCase):
    def setUp(self):
        super().setUp()
        self.reference = self.script(FULL, SPILL_LOG_METRICS="off").stdout
        self.assertNotIn("ERROR", self.reference)
        self.assertFalse(self.file.exists())

    def refused(self, problem, **variables):
        """The program's result is the same; one line and one note say what is wrong."""
        self.log.unlink(missing_ok=True)
        done = self.script(FULL, **variables)
        self.assertEqual((done.stdout, done.returncode), (self.reference, 0))
        lines = [line for line in done.stderr.splitlines() if "log.metrics" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], f"^spill: log.metrics cannot be written: {problem}")
        self.assertEqual([r["code"] for r in self.checked_records() if r["kind"] == "note"], ["metrics"])

    def test_off_costs_no_thread(self):
        words = "retain:0 alloc:a:4m:4 tasks free:a"
        self.assertEqual(self.script(words, SPILL_LOG_METRICS="off").stdout, self.script(words, SPILL_LOG_METRICS=None).stdout)

    def test_a_missing_folder(self):
        self.refused("No such file or directory: .*/none/x.prom$", SPILL_LOG_METRICS=self.folder / "none/x.prom")
        self.assertFalse((self.folder / "none").exists(), "its reader could not enter a folder of ours")

    def test_a_folder_in_the_way(self):
        (self.folder / "spill.prom.tmp").mkdir()
        self.refused("")

    def test_a_link_in_the_way_is_not_followed(self):
        target = self.folder / "target"
        target.write_text("mine\n")
        (self.folder / "spill.prom.tmp").symlink_to(target)
        self.refused("the file is a symbolic link: .*/spill.prom$")
        self.assertEqual(target.read_text(), "mine\n")
        # At the path itself a link is replaced, not followed.
        (self.folder / "spill.prom.tmp").unlink()
        self.file.symlink_to(target)
        self.good(self.script(FULL))
        self.assertEqual((self.file.is_symlink(), target.read_text()), (False, "mine\n"))

    def test_a_file_size_limit(self):
        """No signal, and no half of a file."""
        done = self.script(FULL, how={"preexec_fn": file_limit(1024)}, SPILL_LOG="off")
        self.assertEqual((done.stdout, done.returncode), (self.reference, 0))
        self.assertIn("log.metrics cannot be written: File too large", done.stderr)
        self.assertEqual([path.name for path in self.folder.glob("spill.prom*")], [])

    def test_another_process_of_the_same_path(self):
        """It replaces the file, and its draft is nobody's but its own."""
        running = self.start("retain:0 alloc:a:4m:1 pause:1 free:a", log=self.folder / "other.jsonl")
        self.reach(1)
        done = self.good(self.script(FULL))
        self.assertNotIn("log.metrics", done.stderr)
        self.assertEqual(self.value(self.read(self.file), "spill_spills_total"), 2)
        self.go(1)
        running.communicate()
        self.assertEqual(self.value(self.read(self.file), "spill_spills_total"), 0)
        self.assertEqual([path.name for path in self.folder.glob("spill.prom*")], ["spill.prom"])

    def test_a_program_that_makes_no_call_has_none(self):
        self.script("tasks")
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()

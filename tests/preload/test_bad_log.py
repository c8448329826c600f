"""A log that cannot be written, a stderr that cannot be used, a locale with commas: no matter for the program."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
import log_schema
from harness import KERNELS, PROGRAMS, SPILL, before_end
from scripted import FULL, ScriptCase


class Log(ScriptCase):
    """Wherever the log cannot go or stop, the program's result is the same and what is in the log is valid."""

    movable = "off"

    def setUp(self):
        super().setUp()
        self.reference = self.script(FULL, SPILL_LOG="off").stdout
        self.assertNotIn("ERROR", self.reference)

    def same(self, done):
        self.assertEqual(done.stdout, self.reference)
        self.assertEqual(done.returncode, 0)
        return done

    def whole_lines(self, path=None):
        """The lines of the log that are whole; all of them are JSON."""
        text = (path or self.log).read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.split("\n")[:-1] if line]
        log_schema.check(records)
        return records

    def test_unwritable_folder(self):
        # A file where a folder is wanted refuses root too.
        (self.folder / "file").write_text("")
        done = self.same(self.script(FULL, SPILL_LOG=self.folder / "file" / "log.jsonl"))
        complaint, loud = before_end(done.stderr).splitlines()
        self.assertRegex(complaint, r"^spill: no log: .*: .*/file/log\.jsonl$")
        self.assertIn("placed in host memory", loud)
        self.assertNotIn("; log ", loud)

    def test_a_missing_home_is_not_made(self):
        # As daemons' users have one; root could make it.
        for variables in ({}, {"SPILL_LOG": "~/x/y.jsonl"}, {"XDG_STATE_HOME": self.folder / "none/.local/state"}):
            with self.subTest(variables=variables):
                done = self.same(self.script(FULL, **{"SPILL_LOG": None, "HOME": self.folder / "none"} | variables))
                complaint, loud = before_end(done.stderr).splitlines()
                self.assertRegex(complaint, r"^spill: no log: .*HOME .*does not exist")
                self.assertIn("placed in host memory", loud)
                self.assertFalse((self.folder / "none").exists())

    def disk(self, size):
        """A folder on a disk of its own."""
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(disk)],
                                 capture_output=True, check=False)
        if mounted.returncode:
            self.skipTest("a mount is refused here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)], check=False)
        return disk

    def test_full_disk(self):
        path = self.disk("4k") / "log.jsonl"
        # More than 4 KiB of lines.
        words = FULL + " alloc:b:1m:20 free:b" * 3
        done = self.good(self.script(words, SPILL_LOG=path))
        self.assertEqual(self.results(done), self.results(self.script(words, SPILL_LOG="off")))
        lines = self.whole_lines(path)
        self.assertEqual(lines[0]["kind"], "start")
        self.assertNotIn("exit", [line["kind"] for line in lines])

    def test_a_disk_that_has_room_again(self):
        """The line that was cut goes on where it stopped; if lines were lost, a note says how many."""
        disk = self.disk("256k")
        with (disk / "filler").open("wb") as filler, self.assertRaises(OSError):
            filler.write(b"x" * 252 * 1024)
            filler.flush()
            filler.write(b"x" * 65536)
            filler.flush()
        with (disk / "filler").open("r+b") as filler:
            filler.truncate(252 * 1024)
        remove = self.folder / "remove"
        remove.write_text(f"#!/bin/sh\nrm {disk}/filler\n")
        remove.chmod(0o700)
        words = FULL + " alloc:b:1m:20 free:b" * 4
        done = self.good(self.script(f"{words} child:{remove} {words}", SPILL_LOG=disk / "log.jsonl"))
        self.assertIn("status 0", done.stdout)
        records = self.records(disk / "log.jsonl")
        self.assertEqual((records[0]["kind"], records[-1]["kind"]), ("start", "exit"))
        lost, = [r["text"].split() for r in records if r.get("code") == "log-lost"]
        self.assertEqual(lost[-4:], ["space", "left", "on", "device"])
        self.assertEqual(records[-1]["allocs"] + records[-1]["frees"] - int(lost[0]),
                         len([r for r in records if r["kind"] in ("alloc", "free")]))

    def test_file_size_limit(self):
        words = FULL + " alloc:b:1m:20 free:b" * 3
        done = self.good(self.script(words, how={"preexec_fn": harness.file_limit(4096)}))
        self.assertGreaterEqual(done.returncode, 0)
        self.assertEqual(self.log.stat().st_size, 4096)
        self.assertEqual(self.whole_lines()[0]["kind"], "start")

    def test_closed_stderr(self):
        def close():
            os.close(2)

        done = self.same(self.script(FULL, how={"preexec_fn": close, "stderr": None}))
        self.assertNotIn("spill:", done.stdout)
        self.checked_records()

    def test_stderr_without_a_reader(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            self.same(self.script(FULL, how={"stderr": writer}))  # no SIGPIPE
        finally:
            os.close(writer)
        self.checked_records()

    def test_full_stderr_pipe_does_not_block(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        filled = 0
        try:
            while True:
                filled += os.write(writer, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(writer, True)
        try:
            self.same(self.script(FULL, how={"stderr": writer}))
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            self.assertEqual(len(pipe.read()), filled)
        self.checked_records()

    def test_fd_2_is_the_programs_data_file(self):
        data = self.folder / "data"
        done = self.script(f"stderr:{data} " + FULL)
        self.assertEqual(done.stdout.replace(f"stderr:{data} CUDA_SUCCESS\n", ""), self.reference)
        self.assertEqual(data.read_bytes(), b"")
        self.checked_records()

    def test_a_link_at_its_place(self):
        victim = self.folder / "victim"
        victim.write_text("mine")
        self.log.symlink_to(victim)
        done = self.same(self.script(FULL))
        self.assertEqual(victim.read_text(), "mine")
        self.assertEqual(done.stderr.splitlines()[0], f"spill: no log: the file is a symbolic link: {self.log}")

    def test_a_second_name(self):
        victim = self.folder / "victim"
        victim.write_text("mine")
        os.link(victim, self.log)
        done = self.same(self.script(FULL))
        self.assertEqual(victim.read_text(), "mine")
        self.assertIn("second name", done.stderr.splitlines()[0])

    def test_comma_locale(self):
        if not shutil.which("localedef") or not pathlib.Path("/usr/share/i18n/locales/de_DE").exists():
            self.skipTest("localedef or its sources are not installed")
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", str(self.folder / "de_DE.UTF-8")],
                              capture_output=True, check=False)
        if not (self.folder / "de_DE.UTF-8").exists():
            self.skipTest(f"localedef: {made.stderr}")
        done = self.script("locale:de_DE.UTF-8 " + FULL, LOCPATH=self.folder, SPILL_DEVICE_LIMIT="10.5MiB",
                           SPILL_HOST_LIMIT="50.5%")
        self.good(done)
        records = self.checked_records()
        self.assertEqual(self.policy(records)["host.limit"], "50.5%")
        loud, = before_end(done.stderr).splitlines()
        self.assertIn("4.00 MiB", loud)


class Shared(ScriptCase):
    """One name for processes that run at once: each has a file of its own, and none is mixed with another."""

    def test_one_name(self):
        """A program, one that it runs, and two that this one runs, one after the other: for the second of them the name is free."""
        def runs(name, *commands):
            path = self.folder / name
            path.write_text("#!/bin/sh\n" + "\n".join(commands) + "\n")
            path.chmod(0o700)
            return f"child:{path}"

        program = f"{PROGRAMS / 'script'} {KERNELS} {FULL}"
        inner = runs("inner", f"{program} && {program}")
        outer = runs("outer", f"{program} {inner}")
        for name, others in ("log.jsonl", ("log-2.jsonl", "log-3.jsonl")), ("plain", ("plain-2", "plain-3")):
            done = self.good(self.script(f"{FULL} {outer} {FULL}", SPILL_LOG=self.folder / name))
            self.assertIn("status 0", done.stdout)
            pids = {self.checked_records(self.folder / one)[0]["pid"] for one in (name, others[0])}
            self.assertEqual(len(pids), 2)
            runs_of_last, done = harness.report(self.folder / others[1])
            self.assertEqual(([(run["differences"], run["exited"]) for run in runs_of_last], done.returncode),
                             ([([], True)] * 2, 0))


class Rotated(ScriptCase):
    """The file is taken away or emptied while the program runs: it goes on in another, and together they are the run."""

    movable = "off"

    def with_child(self, *commands, log=None):
        """FULL, then each command in a shell of the program's, FULL behind each; the whole as without a log."""
        words, harmless = [FULL], " ".join([FULL] + [f"child:/bin/true {FULL}"] * len(commands))
        for number, command in enumerate(commands):
            child = self.folder / f"child{number}"
            child.write_text(f"#!/bin/sh\ncd {self.folder}\n{command}\n")
            child.chmod(0o700)
            words += [f"child:{child}", FULL]
        words = " ".join(words)
        done = self.good(self.script(words, SPILL_LOG=log or self.log))
        self.assertEqual([result for _, result in self.results(done)],
                         [result for _, result in self.results(self.script(harmless, SPILL_LOG="off"))])
        self.assertEqual(done.stdout.count("status 0"), len(commands))

    def pieces(self, *names):
        """The run's records, of which the later pieces' start lines say how many are before them."""
        whole = []
        for name in names:
            start, *rest = self.all_lines(self.folder / name)
            self.assertEqual((start["kind"], start["t"], start.get("continues", 0)), ("start", 0, len(whole)))
            self.assertEqual({key: start[key] for key in whole[0]} if whole else start,
                             {key: start[key] for key in start if key != "continues"})
            whole += [start, *rest]
        first, *rest = whole
        harness.check_log(self, [first] + [record for record in rest if record["kind"] != "start"])
        return whole

    def codes(self, records):
        return [record["code"] for record in records if record.get("code", "").startswith("log-")]

    def alone(self, name, missing):
        """A piece alone: no sums are said to be wrong that cannot be right."""
        (run,), done = harness.report(self.folder / name)
        self.assertEqual((run["differences"], run["missing_lines"], done.returncode), ([], missing, 1 if missing else 0))
        text = subprocess.run([SPILL, "report", self.folder / name], capture_output=True, text=True, check=False).stdout
        self.assertEqual(f"{missing} LINES OF THIS RUN ARE MISSING" in text, missing > 0)
        self.assertNotIn("THE SUMS OF THE LINES DIFFER", text)

    # Its path is looked at once a second.
    SECOND = "sleep 1.001"

    def test_renamed_twice(self):
        """As logrotate numbers them."""
        rotate = "test ! -e log.jsonl.1 || mv log.jsonl.1 log.jsonl.2; mv log.jsonl log.jsonl.1"
        self.with_child(f"{rotate}; {self.SECOND}", f"{rotate}; {self.SECOND}")
        whole = self.pieces("log.jsonl.2", "log.jsonl.1", "log.jsonl")
        self.assertEqual(self.codes(whole), ["log-rotated"] * 2)
        run = self.reported(self.folder)
        self.assertEqual((run["missing_lines"], run["exited"]), (0, True))
        self.alone("log.jsonl", len(whole) - len(self.all_lines()))
        self.alone("log.jsonl.2", 0)
        (self.folder / "log.jsonl.1").unlink()
        self.assertGreater(self.reported_missing(), 0)

    def reported_missing(self):
        (run,), done = harness.report(self.folder)
        self.assertEqual((run["differences"], done.returncode), ([], 1))
        return run["missing_lines"]

    def test_copied_and_truncated(self):
        """logrotate's copytruncate."""
        self.with_child("cp log.jsonl log.jsonl.1; : >log.jsonl")
        whole = self.pieces("log.jsonl.1", "log.jsonl")
        self.assertEqual(self.codes(whole), ["log-truncated"])
        self.assertEqual(self.reported(self.folder)["missing_lines"], 0)

    def test_removed(self):
        self.with_child(f"rm log.jsonl; {self.SECOND}")
        records = self.records()
        self.assertGreater(records[0]["continues"], 5)
        self.assertEqual((self.codes(records), records[-1]["kind"]), (["log-rotated"], "exit"))
        self.alone("log.jsonl", records[0]["continues"])

    def test_removed_and_begun_by_another(self):
        """Another process's log has the name before we look: ours goes on beside it."""
        other = self.folder / "other.jsonl"
        self.good(self.script(FULL, SPILL_LOG=other))
        theirs = re.sub(b'"time":"[0-9]+', b'"time":"2999', other.read_bytes(), count=1)  # behind ours
        other.write_bytes(theirs)
        with other.open("rb") as begun:
            fcntl.flock(begun, fcntl.LOCK_EX)
            self.with_child(f"mv log.jsonl log.jsonl.1; mv other.jsonl log.jsonl; {self.SECOND}")
        self.assertEqual(self.log.read_bytes(), theirs)
        self.assertEqual(self.codes(self.pieces("log.jsonl.1", "log-2.jsonl")), ["log-rotated"])
        runs, done = harness.report(self.folder)
        self.assertEqual(([(run["differences"], run["missing_lines"], run["exited"]) for run in runs], done.returncode),
                         ([([], 0, True)] * 2, 0))

    def test_cut_in_the_middle(self):
        """The lines of a run that are gone are counted, even where they were in its own file."""
        self.with_child("truncate -s -100 log.jsonl")
        missing = self.reported_missing()
        self.assertGreater(missing, 0)
        text = self.log.read_text(encoding="utf-8")
        self.assertRegex(text, r'[^\n]\{"v":1,"kind":"start"')
        self.assertIn("log-truncated", text)

    def test_a_full_one_is_renamed(self):
        """As large as a file may be: what found no room is counted, in the new piece, and what was whole stays whole."""
        move = self.folder / "move"
        move.write_text(f"#!/bin/sh\nmv {self.log} {self.log}.1\n{self.SECOND}\n")
        move.chmod(0o700)
        more = " alloc:b:1m:20 free:b"
        done = self.good(self.script(f"{FULL}{more * 8} child:{move} {FULL}", how={"preexec_fn": harness.file_limit(20000)}))
        self.assertIn("status 0", done.stdout)
        old = (self.folder / "log.jsonl.1").read_bytes()
        self.assertEqual(len(old), 20000)
        records = self.records()
        self.assertEqual((records[0]["continues"], records[-1]["kind"]), (old.count(b"\n"), "exit"))
        # On a busy machine libspill tries once in the meantime, so there are two counts.
        notes = [r["text"] for r in records if r.get("code") == "log-lost"]
        counts = [re.fullmatch(r"([0-9]+) lines \([0-9]+ bytes\) could not be written: File too large", note) for note in notes]
        self.assertTrue(counts and all(counts), notes)
        (run,), _ = harness.report(self.folder)
        self.assertEqual((run["missing_lines"], run["exited"]), (0, True))
        told = sum(line.count(b'"kind":"alloc"') for line in old.split(b"\n")[:-1]) + len([r for r in records if r["kind"] == "alloc"])
        self.assertEqual(run["totals"]["allocs"], told)
        lost = records[-1]["allocs"] - told
        self.assertTrue(0 < lost <= sum(int(count[1]) for count in counts), notes)

    def test_its_folder_is_removed(self):
        """Nothing can be made there, and nothing is harmed."""
        folder = self.folder / "logs"
        folder.mkdir()
        self.with_child(f"rm -r logs; {self.SECOND}", log=folder / "log.jsonl")
        self.assertFalse(folder.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)

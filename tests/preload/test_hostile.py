"""Names and texts of others cannot steer a terminal: every command, each of its operands and options, each member of a log, and the
lines of the library itself. What is written has no control character but newlines, nothing that changes directions, no bytes that
are not UTF-8; and no name begins a line of its own.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "static"))
import commands_table
from harness import KERNELS, LIBRARY, PROGRAMS, SPILL, Case

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = commands_table.read(ROOT / "src/cli/base/commands.def")
DATA = ROOT / "tests/cli/data"
STEERING = "\x1b\x07\x01\t\r\x7f\u009b\u0085\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FORGED = "FORGED"
# As a name in the file system, and as an argument: with a byte that is no character.
NAME = ("x" + STEERING + "\n" + FORGED).encode() + b"\x9b2Jy"
# As text in JSON, where bytes are characters.
TEXT = "x" + STEERING + "\n" + FORGED
FOUND = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# The loader's own words.
LOADER = re.compile(rb"ERROR: ld\.so: object '.*?' from LD_PRELOAD cannot be preloaded .*?: ignored\.\n", re.S)


class Page(html.parser.HTMLParser):
    """What a page shows: the texts of its data, decoded."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.data = False, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "script" and dict(attributes).get("type") == "application/json"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        self.data += data if self.inside else ""


def texts(value):
    """Every text in a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts(item)


class Hostile(Case):
    def environment(self, **variables):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8",
                "LD_LIBRARY_PATH": os.environ["SIM_PATH"], **variables}

    def check(self, output, where):
        text = LOADER.sub(b"", output).decode("utf-8")
        self.assertIsNone(FOUND.search(text), (where, text))
        self.assertFalse([line for line in text.split("\n") if line.startswith(FORGED)], (where, text))
        return text

    def check_page(self, output, where):
        """The rest is the page's own text. Returns its data."""
        data = Page(output.decode()).data
        for text in texts(json.loads(data)):
            self.assertIsNone(FOUND.search(text), (where, text))
            self.assertNotIn("\n", text)
        return data.encode()

    def spill(self, *arguments, cwd=None, text=None, **variables):
        """Runs the command; what it wrote is checked. `text` must be in it, so that the case cannot become another one."""
        arguments = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
        done = subprocess.run([str(SPILL).encode(), *arguments], env=self.environment(**variables), cwd=cwd or self.folder,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.assertGreaterEqual(done.returncode, 0, (arguments, done.stderr))
        output = done.stdout
        if output.startswith(b"<!doctype html>"):
            output = self.check_page(output, arguments)
        written = self.check(output, arguments) + self.check(done.stderr, arguments)
        if text is not None:
            self.assertIn(text, written, arguments)
        return done


class Arguments(Hostile):
    def test_every_command_and_option(self):
        for name, command in COMMANDS.items():
            with self.subTest(name):
                self.spill(name, NAME, text="x?????")
                self.spill(name, b"--" + NAME, text="x?????")
                self.spill(name, b"-" + b"\x9b", text="?")
                for option in command.options:
                    more = [self.log_of_data()] if name in ("report", "log", "replay") else ["--once"] if name == "top" else []
                    if option.argument:
                        self.spill(name, "--" + option.name, NAME, *more)
                        self.spill(name, b"--" + option.name.encode() + b"=" + NAME, *more)
                    else:
                        self.spill(name, b"--" + option.name.encode() + b"=" + NAME, text="takes no value")
        self.spill(NAME, text="unknown command 'x?")
        self.spill("help", NAME, text="unknown command 'x?")
        self.spill("help", "run", NAME, text="unexpected argument 'x?")

    def log_of_data(self):
        shutil.copy(DATA / "run.jsonl", self.folder)
        return self.folder / "run.jsonl"


class Paths(Hostile):
    """A file and a folder of that name, whatever is in them."""

    def setUp(self):
        super().setUp()
        self.place = os.fsencode(self.folder) + b"/" + NAME
        os.mkdir(self.place)

    def write(self, data, ending=b".jsonl"):
        path = self.place + b"/" + NAME + ending
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_logs(self):
        good = (DATA / "run.jsonl").read_bytes()
        cases = {b"": "no records", b"{nonsense\n" * 9: "not a record", b'{"v":1,': "the last line is cut",
                 b"x" + good: "", good + good[:100] + good: "", good: "", good * 2: ""}
        for data, text in cases.items():
            path = self.write(data)
            for command in ("log", "report", "replay"):
                self.spill(command, path, text=text)
                self.spill(command, self.place, text=text)
                self.spill(command, "--json", path)
            self.spill("report", "--html", "-", path)
            self.spill("report", "--html", path + b".html", path)
        for command in ("log", "report", "replay"):
            self.spill(command, path, path)
            os.chmod(path, 0)
            self.spill(command, path)
            self.spill(command, self.place)
            os.chmod(path, 0o600)
            os.mkdir(self.place + b"/" + NAME + b"2.jsonl")
            self.spill(command, self.place, text="it is a folder")
            os.rmdir(self.place + b"/" + NAME + b"2.jsonl")
        os.unlink(path)
        for command in ("log", "report", "replay"):
            self.spill(command, self.place, text="no *.jsonl in it")

    def test_pages(self):
        path = self.write((DATA / "run.jsonl").read_bytes())
        self.spill("report", "--html", path, path, text="is a log, and would be lost")
        self.spill("report", "--html", self.place, path)
        self.spill("report", "--html", self.place + b"/none/x", path)
        self.spill("report", "--html", path + b".html", self.place + b"/none", text="no run was read")

    def test_policies(self):
        for data, text in ((b"nonsense\n", ":1:"), (b"[device]\nlimit = 6\n", "did you mean"), (b"", ""),
                           (b"[rule a]\nplace = host\n[rule b]\nplace = host\n", "the rule is never reached"),
                           ("[rüle]\n\u202e = \u009b\n".encode(), ":1:"), ("[rule \u202e]\nplace = \u202e\n".encode(), ""),
                           ("[log]\npath = /\u202ea\n[app \u202e]\ndevice.limit = 1GiB\n".encode(), "")):
            path = self.write(data, b".conf")
            self.spill("check", path, text=text)
            self.spill("check", "--json", path)
            self.spill("policy", SPILL_POLICY=path)
            self.spill("policy", "--json", SPILL_POLICY=path)
            self.spill("doctor", "-v", "--quick", SPILL_POLICY=path)
            self.spill("run", "-p", path, "true")
            self.spill("replay", "-p", path, DATA / "run.jsonl")
        os.makedirs(self.place + b"/spill")
        shutil.copy(path, self.place + b"/spill/spill.conf")
        self.spill("policy", XDG_CONFIG_HOME=self.place, text="x?")
        os.chmod(path, 0o666)
        self.spill("check", path, text="others can write it")
        self.spill("run", "-p", path, "true", text="others can write it")

    def test_programs(self):
        path = self.write(b"#!/nowhere/" + NAME.replace(b"\n", b"") + b"\n", b"")
        self.spill("doctor", "-v", "--quick", "--", path, text="it may not be executed")
        os.chmod(path, 0o700)
        self.spill("doctor", "-v", "--quick", "--", path, text="is a script of")
        self.spill("run", path, text="that the file names")
        self.spill("doctor", "-v", "--quick", "--root", self.place)
        shutil.copy(LIBRARY, self.place + b"/libspill.so")
        self.spill("run", "true", LD_PRELOAD=self.place + b"/libspill.so", text="another libspill.so is preloaded")
        shutil.copy(SPILL, self.place + b"/spill")
        done = subprocess.run([self.place + b"/spill", "run", "true"], env=self.environment(), capture_output=True, timeout=60, check=False)
        self.check(done.stdout + done.stderr, "a library in a folder with blanks")


class Environment(Hostile):
    def test_variables(self):
        for name in ("SPILL", "SPILL_MODE", "SPILL_LOG", "SPILL_POLICY", "SPILL_DEVICE_LIMIT", "SPILL_LOG_METRICS", "XDG_CONFIG_HOME",
                     "XDG_STATE_HOME", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
                     "CUDA_MPS_PIPE_DIRECTORY", "NCCL_" + "X", "container", "PATH"):
            for command in (["policy"], ["policy", "--json"], ["doctor", "-v", "--quick"], ["doctor", "-v", "--quick", "--json"], ["run", "true"]):
                for value in (NAME, b"/" + NAME):
                    self.spill(*command, **{name: value})

    def test_a_name(self):
        for command in ("policy", "doctor"):
            for more in ([], ["--json"]):
                done = subprocess.run([SPILL, command, *more], env={**{name.encode(): value.encode() for name, value in
                                      self.environment().items()}, b"SPILL_" + NAME: b"1"}, capture_output=True, timeout=60, check=False)
                self.assertIn("SPILL_x", self.check(done.stdout, command))


def places(value, path=()):
    """The path of each text in a record."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, (list, dict)):
        for key, item in enumerate(value) if isinstance(value, list) else value.items():
            yield from places(item, path + (key,))


def with_text(record, path):
    record = json.loads(json.dumps(record))
    at = record
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = TEXT
    return record


class Logs(Hostile):
    def logs(self):
        """A log for each place where a text is in the logs that we have."""
        seen = set()
        for path in sorted(DATA.glob("*.jsonl")):
            records = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            records[0]["rank"] = {"RANK": "1"}
            for number, record in enumerate(records):
                for at in places(record):
                    key = (record["kind"], *(step for step in at if isinstance(step, str)))
                    if key not in seen and key[1:] != ("kind",):
                        seen.add(key)
                        yield key, [*records[:number], with_text(record, at), *records[number + 1:]]
        self.assertGreater(len(seen), 40)

    def test_each_member(self):
        path = self.folder / "a.jsonl"
        for key, records in self.logs():
            with self.subTest(key):
                for raw in (False, True):
                    lines = [json.dumps(record, ensure_ascii=not raw) for record in records]
                    path.write_text("\n".join(lines) + "\n")
                    for command in (["log"], ["report"], ["replay"], ["replay", "--list"]):
                        self.spill(*command, path)
                told = json.loads(self.spill("log", "--json", path).stdout)
                # As it is; where it is no text but one of some words, the line is none.
                self.assertIn(told, (records, [record for record in records if TEXT not in texts(record)]))
                json.loads(self.spill("report", "--json", path).stdout)
                decided = self.spill("replay", "--json", path).stdout
                json.loads(decided or "{}")  # without the policy it is not decided
                self.spill("report", "--html", "-", path, text='"stories"')

    def test_between_the_members(self):
        path = self.folder / "a.jsonl"
        path.write_text((DATA / "run.jsonl").read_text().replace(",", "\t,\r"))
        self.spill("log", "--json", path)


class Library(Hostile):
    def test_the_lines_of_a_run(self):
        """A program of that name, in a folder of that name, with a policy and a log there."""
        place = os.fsencode(self.folder) + b"/" + NAME
        os.mkdir(place)
        program = place + b"/" + NAME
        shutil.copy(PROGRAMS / "prog_driver_link", program)
        with open(place + b"/p.conf", "wb") as file:
            file.write(b"nonsense\n")
        # A program that runs cannot be written. Not the one above: that is only read, where an emulator runs it.
        busy = place + b"/busy" + NAME
        shutil.copy(sys.executable, busy)
        running = subprocess.Popen([busy, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        self.addCleanup(running.communicate)
        for variables, text in (({}, "expect lower speed"), ({"SPILL_POLICY": place + b"/p.conf"}, ":1:"),
                                ({"SPILL_MODE": NAME}, "SPILL_MODE"), ({"SPILL_LOG": place + b"/none/x/%e"}, ""),
                                ({"SPILL_LOG": busy}, "no log"), ({"SPILL_DEVICE_LIMIT": "30MiB", "SPILL_OOM_CHAIN": ""}, "out of memory"),
                                ({"SPILL_LOG_STDERR": "all"}, "spilled")):
            with self.subTest(variables):
                environment = self.environment(**{"LD_PRELOAD": LIBRARY, "SPILL_SIM_VRAM": "64MiB", "SPILL_MOVABLE_ENABLE": "off",
                                                  "SPILL_HOST_SHARE": "no", "SPILL_LOG": place + b"/%e.jsonl", **variables})
                done = subprocess.run([program, "--kernels", KERNELS, "--count", "5", "--mib", "20"], env=environment,
                                      capture_output=True, timeout=60, check=False)
                told = b"\n".join(line for line in done.stderr.split(b"\n") if line.startswith(b"spill: "))
                self.assertIn(text, self.check(told, variables))
                self.check(b"\n".join(line for line in done.stderr.split(b"\n") if FORGED.encode() == line[:6]), variables)
        for name in os.listdir(place):
            if name.endswith(b".jsonl"):
                with open(place + b"/" + name, "rb") as file:
                    self.check(file.read(), "the log")
                self.spill("report", place + b"/" + name)


class NoRegularFile(Hostile):
    """What is named as a log is and is none: nothing waits for it, and what is beside it is read."""

    def setUp(self):
        super().setUp()
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        shutil.copy(DATA / "moves.jsonl", self.logs / "a.jsonl")

    def made(self):
        """Each of them by its name, and what is said of it."""
        os.mkfifo(self.logs / "fifo.jsonl")
        os.mkfifo(self.folder / "elsewhere")
        os.symlink(self.folder / "elsewhere", self.logs / "link.jsonl")
        os.symlink("/dev/zero", self.logs / "device.jsonl")
        os.mkdir(self.logs / "folder.jsonl")
        there = socket.socket(socket.AF_UNIX)
        self.addCleanup(there.close)
        there.bind(str(self.logs / "socket.jsonl"))
        # Of one name with the good one: which is first is asked of each.
        os.mkfifo(self.logs / "a.jsonl.1")
        os.mkfifo(self.logs / "a-2.jsonl")
        os.symlink("nowhere", self.logs / "broken.jsonl")
        odd = ("fifo.jsonl", "link.jsonl", "device.jsonl", "socket.jsonl", "a.jsonl.1", "a-2.jsonl")
        return {**{name: "it is not a regular file" for name in odd}, "folder.jsonl": "it is a folder",
                "broken.jsonl": "No such file or directory"}

    def test_in_a_folder(self):
        said = self.made()
        for command in (["log"], ["report"], ["replay", "--profile", "none"], ["log", "-f"], ["report", "--json"], ["log", "--json"]):
            with self.subTest(command):
                done = self.spill(*command, self.logs)
                self.assertEqual(done.returncode, 1)
                for name, text in said.items():
                    self.assertIn(f"{self.logs}/{name}: {text}\n", done.stderr.decode())
                self.assertIn(b"llama-server", done.stdout)

    def test_by_a_pid(self):
        """Of a folder that holds logs of processes."""
        state = self.folder / ".local/state/spill"
        state.mkdir(parents=True)
        os.mkfifo(state / "x-999999999.jsonl")
        self.assertEqual(self.spill("log", "999999999", text="no such file, and no process").returncode, 1)

    def test_the_writer_of_a_pipe_is_left_alone(self):
        """It waits in open: one who opens and closes would let it go, and it would be killed at its first line."""
        os.mkfifo(self.logs / "fifo.jsonl")
        writer = subprocess.Popen(["sh", "-c", "echo line >fifo.jsonl"], cwd=self.logs)
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)  # before the wait: if a command fails, nobody else lets it go
        for command in ("log", "report", "replay"):
            self.spill(command, self.logs)
        self.assertIsNone(writer.poll())
        self.assertEqual((self.logs / "fifo.jsonl").read_text(), "line\n")

    def test_named(self):
        """A pipe that is named is read, as other programs do; nothing else that is no file."""
        self.made()
        for command, *more in (["log"], ["report"], ["replay", "--profile", "none"]):
            with self.subTest(command):
                by_name = self.spill(command, *more, self.logs / "a.jsonl")
                for how in ('"$@" <(cat "$log")', 'cat "$log" | "$@" /dev/stdin', '"$@" /dev/stdin <"$log"'):
                    done = subprocess.run(["bash", "-c", "log=$1; shift; " + how, "bash", self.logs / "a.jsonl", SPILL, command, *more],
                                          env=self.environment(), capture_output=True, timeout=60, check=False)
                    self.assertEqual((done.returncode, done.stderr), (by_name.returncode, b""))
                    self.assertEqual(re.sub(rb"/dev/[^\s:]+:?", b"", done.stdout),
                                     re.sub(re.escape(os.fsencode(self.logs)) + rb"/a\.jsonl:?", b"", by_name.stdout))
                for path in ("/dev/zero", "/dev/null", self.logs / "device.jsonl", self.logs / "socket.jsonl"):
                    done = self.spill(command, path, text=f"spill {command}: {path}: it is neither a regular file nor a pipe\n")
                    self.assertEqual(done.returncode, 1)

    def test_policies(self):
        os.mkfifo(self.folder / "p.conf")
        for path in (self.folder / "p.conf", "/dev/zero"):
            self.spill("check", path, text="it is not a regular file")
            self.spill("run", "-p", path, "true", text="it is not a regular file")
            self.spill("replay", "-p", path, self.logs, text="it is not a regular file")
            self.spill("policy", SPILL_POLICY=str(path), text="it is not a regular file")
            self.spill("doctor", "-v", "--quick", SPILL_POLICY=str(path), text="it is not a regular file")

    def test_what_doctor_reads(self):
        """Below another root, where anything may be."""
        for name in ("proc/meminfo", "etc/ld.so.cache", "etc/ld.so.preload", "proc/self/cgroup", "proc/self/mountinfo", "proc/1/environ"):
            path = self.folder / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            os.mkfifo(path)
        self.spill("doctor", "-v", "--quick", "--root", self.folder / "root", "--", "true")
        os.unlink(self.folder / "root/proc/self/cgroup")
        (self.folder / "root/proc/self/cgroup").write_text("0::/a\n")
        self.spill("doctor", "-v", "--quick", "--root", self.folder / "root", "--", "true")


if __name__ == "__main__":
    unittest.main()

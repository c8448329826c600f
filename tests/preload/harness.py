"""What the tests of the preloaded library share: run a program with and without it, read its log, check the log.

meson gives the paths in the environment: LIBSPILL, KERNELS, PROGRAMS (a folder), SIM_PATH (LD_LIBRARY_PATH).
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import log_schema

LIBRARY = os.environ["LIBSPILL"]
SPILL = pathlib.Path(LIBRARY).parent / "spill"
KERNELS = os.environ["KERNELS"]
PROGRAMS = pathlib.Path(os.environ["PROGRAMS"])
MIB = 1 << 20
SMALL = "20MiB"
# Of the time after which a program hangs: more where programs run by an emulator (scripts/aarch64).
PATIENCE = int(os.environ.get("PATIENCE", "1"))

CUDA = ["prog_runtime", "prog_runtime_static", "prog_driver_link", "prog_driver_dlsym", "prog_driver_proc1",
        "prog_driver_proc2"]
ALL = CUDA + ["prog_hip"]


def left_out():
    """Why this machine cannot run a test, by its name: the lines `FILE / TEST: REASON` of tests/aarch64/left_out."""
    path = os.environ.get("LEFT_OUT")
    text = pathlib.Path(path).read_text(encoding="utf-8") if path else ""
    return dict(re.findall(r"^[^#:]* / (\w+): (.*)$", text, re.MULTILINE))


LEFT_OUT = left_out()


def of_release(release):
    """The folder of the simulated HIP of that release, for LD_LIBRARY_PATH."""
    folder, = [folder for folder in os.environ["SIM_PATH"].split(":") if folder.endswith("/hip")]
    return f"{folder}/{release}"


def program(name, *arguments):
    """Five buffers of 6 MiB unless the arguments say otherwise: more than a device of SMALL."""
    return [str(PROGRAMS / name), "--kernels", KERNELS, *(arguments or ("--count", "5", "--mib", "6"))]


class Case(unittest.TestCase):
    """A test with a folder of its own as HOME, so that no configuration of this machine leaks in."""

    # movable.enable of every run (SPILL_MOVABLE_ENABLE); None: the library's own default. "off" where the subject is where
    # the other places come in: a device that is more than half full would have movable memory, which makes way for them.
    movable = None
    # movable.follow likewise, but "off" unless it is the subject: whether bringing memory back pays is told by measured times,
    # which are not the same twice, and then other memory leaves the device than what the words of a test say.
    follow = "off"
    # host.share likewise: tests run beside each other, as one user.
    share = "no"
    # log.level of every run, "each" unless the sums of "all" (None) are the subject: tests look at single allocations.
    level = "each"
    # The simulated device, which has room for three of program()'s buffers where that is SMALL.
    vram = "64MiB"

    def setUp(self):
        if self._testMethodName in LEFT_OUT:
            self.skipTest(LEFT_OUT[self._testMethodName])
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="spill-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.log = self.folder / "log.jsonl"

    def preloaded(self):
        """The variables of a run with the library."""
        variables = {"LD_PRELOAD": LIBRARY, "SPILL_LOG": str(self.log)}
        given = {"SPILL_MOVABLE_ENABLE": self.movable, "SPILL_MOVABLE_FOLLOW": self.follow,
                 "SPILL_HOST_SHARE": self.share, "SPILL_LOG_LEVEL": self.level}
        return variables | {name: value for name, value in given.items() if value}

    def run_program(self, command, *, preload=True, vram=None, timeout=300, **variables):
        """Runs on the simulator; returns the CompletedProcess. `variables` are added to a bare environment."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SPILL_SIM_VRAM": vram or self.vram,
                       "LD_LIBRARY_PATH": os.environ["SIM_PATH"]}
        if preload:
            environment |= self.preloaded()
        for name, value in variables.items():
            environment[name] = str(value)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout * PATIENCE, check=False)

    def all_right(self, done):
        """Every word of a program succeeded and all data was right."""
        if done.returncode or "ERROR" in done.stdout or "wrong" in done.stdout:
            log = self.log.read_text(encoding="utf-8") if self.log.is_file() else ""
            self.fail(f"exit status {done.returncode}\n{done.stdout}{done.stderr or ''}{log}")
        return done

    def records(self, path=None):
        return without_files(self.all_lines(path))

    def files(self, path=None):
        """The files of callers."""
        return [record for record in self.all_lines(path) if record["kind"] == "file"]

    def check_files(self, lines):
        """Each file that a caller of a run names has its line there, and only one."""
        runs = []
        for record in lines:
            runs += [([], set())] if record["kind"] == "start" else []
            files, named = runs[-1]
            if record["kind"] == "file":
                files.append((record["name"], record["path"], record.get("build_id")))
            elif "+0x" in record.get("caller", ""):
                named.add(record["caller"].rpartition("+0x")[0])
        for files, named in runs:
            self.assertEqual(len(files), len(set(files)))
            self.assertLessEqual(named, {name for name, _, _ in files})

    def all_lines(self, path=None):
        text = (path or self.log).read_text(encoding="utf-8")
        self.assertTrue(text.endswith("\n"), "the last line is whole")
        lines = text.splitlines()
        records = [json.loads(line) for line in lines]
        log_schema.check(records, lines)
        return records

    def checked_records(self, path=None):
        """The log's records, after a check of what must hold of every log."""
        lines = self.all_lines(path)
        records = without_files(lines)
        check_log(self, records)
        self.check_files(lines)
        read = subprocess.run([SPILL, "log", path or self.log], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        self.assertEqual((read.returncode, read.stderr), (0, ""), "every line is one that our own reader takes")
        self.reported(path)
        return records

    def reported(self, path=None):
        """What `spill report` makes of the log: to the byte what the program counted, if it could say so."""
        (run,), done = report(path or self.log)
        self.assertEqual(done.stderr, "")
        self.assertEqual((run["differences"], run["unknown_frees"], run["late_events"], run["bad_lines"]), ([], 0, 0, 0))
        self.assertEqual(done.returncode, 1 if run["totals"]["ooms"] > run["honest"] else 0)
        return run


def file_limit(most):
    """A preexec_fn: no file grows beyond it. The simulator makes its memory of a file where it must, so the hard limit stays."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def without_files(lines):
    """A log's records without the files of callers, which come when their names are first used."""
    return [record for record in lines if record["kind"] != "file"]


def report(path):
    """The runs of a log or a folder as `spill report --json` has them, and the CompletedProcess."""
    done = subprocess.run([SPILL, "report", "--json", path], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    return json.loads(done.stdout)["runs"], done


BLOCK = re.compile(r"^spill: [^\n]*: out of memory: [^\n]*\n(?:spill:   [^\n]*\n)+", re.MULTILINE)


def apart(stderr):
    """What is on stderr besides the blocks about an out of memory, and these."""
    return BLOCK.sub("", stderr), BLOCK.findall(stderr)


END = re.compile(r"^spill: (?! )[^\n:]*: up to [^\n]* was in host [^\n]* on the card[^\n]*\n", re.MULTILINE)


def before_end(stderr):
    """What is on stderr before the line that ends a run that spilled, which must be the last."""
    rest, count = END.subn("", stderr)
    if count != 1 or not END.fullmatch(stderr[len(rest):]):
        raise AssertionError(f"not one line at the end: {stderr}")
    return rest


def decided(records):
    """The allocations that the policy had a say in: not the pinned and managed memory that the program asked for as such."""
    return [record for record in records if record["kind"] == "alloc" and record["reason"] != "asked"]


def freed(records):
    """The frees of those."""
    mine = {record["seq"] for record in decided(records)}
    return [record for record in records if record["kind"] == "free" and record["seq"] in mine]


def held(record):
    return {kind: record.get(f"{kind}_bytes", 0) for kind in ("device", "host", "managed")}


def in_order(records):
    """Allocations, moves and frees as they happened, which under several threads need not be the order of their lines; the rest follows."""
    events = [record for record in records if "order" in record]
    return sorted(events, key=lambda record: record["order"]) + [record for record in records if "order" not in record]


class Away:
    """What libspill had off the device, and the time of moves: each move once, also if it has several lines."""

    def __init__(self):
        self.of, self.told = {}, {}
        self.now = self.peak = self.wanted = 0

    def add(self, record, device):
        """An event, after which the process holds `device` bytes there."""
        self.wanted = max(self.wanted, record.get("held", {}).get("all_peak", 0) + self.now)
        if record["kind"] == "move" or (record["kind"] == "alloc" and record["reason"] != "asked"):
            self.now -= self.of.get(record["seq"], 0)
            self.of[record["seq"]] = held(record)["host"] + held(record)["managed"]
            self.now += self.of[record["seq"]]
        elif record["kind"] == "free":
            self.now -= self.of.pop(record["seq"], 0)
        if record["kind"] == "move":
            begin = round(record["t"] * 1e6) - record["us"]
            self.told[begin] = max(self.told.get(begin, 0), record["us"])
        self.peak, self.wanted = max(self.peak, self.now), max(self.wanted, device + self.now)

    def sums(self):
        return {"peak_bytes": self.peak, "wanted_bytes": self.wanted, "moves_us": sum(self.told.values())}


def check_away(case, told, sums, run_us):
    """The figures that follow from the lines; and estimates, which are possible ones."""
    case.assertEqual({name: told[name] for name in sums}, sums)
    lost, most = told.get("in_place_us", 0), told.get("in_place_most_us", 0)
    case.assertLessEqual(lost, most)
    case.assertLessEqual(most, run_us)
    if "in_place_bytes" in told:
        case.assertIn("followed_bytes", told)


def check_log(case, records):
    """Start first, exit last, each free names a live alloc, and the totals follow from the lines and the sums of those left out."""
    kinds = [record["kind"] for record in records]
    case.assertEqual(kinds[0], "start")
    case.assertEqual(kinds.count("start"), 1)
    live, spilled, spills, frees, ooms = {}, {"host": 0, "managed": 0}, 0, 0, kinds.count("oom")
    where = {}  # what each live allocation holds, by seq
    moves = {"demotions": 0, "promotions": 0, "demoted_bytes": 0, "promoted_bytes": 0}
    total = {"device": 0, "host": 0, "managed": 0}
    peak = dict(total)
    left_out = {"alloc": 0, "spill": 0, "free": 0}
    summed = {"alloc": 0, "free": 0}
    ahead = 0  # device bytes beyond those that the lines have told
    away = Away()
    case.assertEqual({record["v"] for record in records}, {1})
    for record in in_order(records):
        peak["device"] = max(peak["device"], record.get("held", {}).get("all_peak", 0))
        if record["kind"] == "alloc":
            case.assertNotIn(record["seq"], live)
            live[record["seq"]] = record
            where[record["seq"]] = held(record)
            for kind, size in held(record).items():
                total[kind] += size
            if record["reason"] in ("oom", "limit", "rule") and held(record)["host"] + held(record)["managed"]:
                spills += 1
                for kind in spilled:
                    spilled[kind] += held(record)[kind]
        elif record["kind"] == "free":
            allocation = live.pop(record["seq"])
            case.assertEqual(allocation["ptr"], record["ptr"])
            frees += 1
            for kind, size in where.pop(record["seq"]).items():
                total[kind] -= size
        elif record["kind"] == "move":
            after = held(record)
            if record["seq"] not in where:
                # Another thread moved it before its alloc was told, which found no room in the log.
                case.assertIn("drop", kinds)
                came = record["bytes"] * (1 if record["what"] == "promote" else -1)
                where[record["seq"]] = after | {"device": after["device"] - came, "host": after["host"] + came}
            before, where[record["seq"]] = where[record["seq"]], after
            case.assertEqual(sum(before.values()), sum(after.values()), "a move makes or loses nothing")
            case.assertGreater(record["chunks"], 0)
            left = before["device"] - after["device"]
            case.assertEqual(record["bytes"], left if record["what"] == "demote" else -left)
            case.assertEqual(record["what"], "demote" if left > 0 else "promote")
            moves["demotions" if left > 0 else "promotions"] += 1
            moves["demoted_bytes" if left > 0 else "promoted_bytes"] += abs(left)
            for kind in total:
                total[kind] += after[kind] - before[kind]
        elif record["kind"] == "sum":
            came = {name: record.get(name, {"count": 0, "device_bytes": 0}) for name in summed}
            for name in summed:
                summed[name] += came[name]["count"]
            change = came["alloc"]["device_bytes"] - came["free"]["device_bytes"]
            total["device"] += change
            ahead -= change
        elif record["kind"] == "drop":
            sums = {name: record.get(name, {"count": 0}) for name in ("alloc", "spill", "free", "demote", "promote")}
            for name in left_out:
                left_out[name] += sums[name]["count"]
            for kind in total:
                came = {name: one.get(f"{kind}_bytes", 0) for name, one in sums.items()}
                total[kind] += came["alloc"] + came["spill"] - came["free"]
                if kind in spilled:
                    spilled[kind] += came["spill"]
            for way, there, from_there in (("demote", "host", "device"), ("promote", "device", "host")):
                moved = sums[way].get(f"{there}_bytes", 0)
                case.assertEqual(sum(size for name, size in sums[way].items() if name != "count"), moved, "where they came")
                moves[f"{way[:-1]}ions"] += sums[way]["count"]
                moves[f"{way}d_bytes"] += moved
                total[there] += moved
                total[from_there] -= moved
            peak = held(record["peak"])  # of all the run until then
        elif record["kind"] == "exit":
            case.assertEqual(record["allocs"], kinds.count("alloc") + summed["alloc"] + left_out["alloc"] + left_out["spill"])
            case.assertEqual(record["frees"], frees + summed["free"] + left_out["free"])
            case.assertEqual(record["spills"], spills + left_out["spill"])
            case.assertEqual(record["ooms"], ooms)
            case.assertEqual({name: record[name] for name in moves}, moves)
            for kind, size in total.items():
                case.assertEqual(record["live"][f"{kind}_bytes"], size)
                case.assertEqual(record["peak"][f"{kind}_bytes"], peak[kind])
            for kind, size in spilled.items():
                case.assertEqual(record["spilled"][f"{kind}_bytes"], size)
            if "drop" not in kinds:
                check_away(case, record.get("away", Away().sums()), away.sums(), record["t"] * 1e6)
        if "order" in record:
            if "held" in record:
                ahead = record["held"]["all_bytes"] - total["device"]
            peak = {kind: max(peak[kind], size + (ahead if kind == "device" else 0)) for kind, size in total.items()}
            away.add(record, total["device"] + ahead)
    case.assertEqual(kinds[-1], "exit")

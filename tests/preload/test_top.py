"""`spill top` on running programs: figures as in their logs, whose page is whose, seals that hold, and the view on a terminal."""
import ctypes
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from harness import KERNELS, MIB, PROGRAMS, SPILL, Away, check_log, held, in_order
from scripted import MOVED, ScriptCase

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-pyte is pure Python, for any python3
try:
    import pyte
except ImportError:
    pyte = None

LINK = "/memfd:spill-counters (deleted)"
F_SEAL_WRITE = 8


def descriptor(pid):
    """Path of the process's page below /proc; None if it has none."""
    folder = pathlib.Path(f"/proc/{pid}/fd")
    for entry in folder.iterdir():
        try:
            if os.readlink(entry) == LINK:
                return entry
        except OSError:
            continue
    return None


class TopCase(ScriptCase):
    """Programs of words that stop where a test wants to look: `pause:N` in the words waits for `go(N)`."""

    movable = "off"

    def setUp(self):
        super().setUp()
        self.pauses = self.folder / "pauses"
        self.pauses.mkdir()

    def start(self, words, program="script", log=None, prefix=(), **variables):
        """Returns the Popen; it runs until its first pause (see reach)."""
        words = words.split()
        for word in words:
            if word.startswith("pause:"):
                for name in (word[6:], word[6:] + ".there"):
                    if not (self.pauses / name).exists():
                        os.mkfifo(self.pauses / name)
        words = [f"child:echo >{self.pauses}/{w[6:]}.there; read x <{self.pauses}/{w[6:]}" if w.startswith("pause:") else w
                 for w in words]
        environment = self.environment(SPILL_LOG=log or self.log, **variables)
        running = subprocess.Popen([*prefix, str(PROGRAMS / program), KERNELS, *words], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, running)
        return running

    @staticmethod
    def end(running):
        """With the shell that waits for it in a pause."""
        try:
            os.killpg(running.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        running.communicate()

    def reach(self, pause):
        """Waits until the program is there."""
        self.assertTrue((self.pauses / f"{pause}.there").read_text())

    def go(self, pause):
        """It goes on."""
        (self.pauses / str(pause)).write_text("\n")

    def top(self, *arguments, status=0, env=None):
        done = subprocess.run([SPILL, "top", "--once", "--json", *arguments], capture_output=True, text=True, timeout=60, check=False, env=env)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return json.loads(done.stdout)

    def rows(self, pid, *arguments):
        return [row for row in self.top(*arguments)["rows"] if row["pid"] == pid]

    def row(self, pid, *arguments):
        rows = self.rows(pid, *arguments)
        self.assertEqual(len(rows), 1)
        return rows[0]


class Figures(TopCase):
    def by_log(self, records):
        """What the row must have, from the lines until now."""
        live, sums = {}, {name: 0 for name in ("spills", "spilled_host_bytes", "spilled_managed_bytes", "demotions", "promotions",
                                               "demoted_bytes", "promoted_bytes", "ooms", "allocs", "frees")}
        total = {"device": 0, "host": 0, "managed": 0}
        peak, away, story = dict(total), 0, Away()
        for record in in_order(records):
            if record["kind"] == "alloc":
                ours = record["reason"] in ("oom", "limit", "rule") or record["place"] in ("movable", "split")
                live[record["seq"]] = (held(record), ours)
                sums["allocs"] += 1
                if record["reason"] in ("oom", "limit", "rule") and held(record)["host"] + held(record)["managed"]:
                    sums["spills"] += 1
                    sums["spilled_host_bytes"] += held(record)["host"]
                    sums["spilled_managed_bytes"] += held(record)["managed"]
            elif record["kind"] == "free":
                live.pop(record["seq"])
                sums["frees"] += 1
            elif record["kind"] == "move":
                live[record["seq"]] = (held(record), True)
                sums[f"{record['what'][:-1]}ions"] += 1
                sums[f"{record['what']}d_bytes"] += record["bytes"]
            elif record["kind"] == "oom":
                sums["ooms"] += 1
            for kind in total:
                total[kind] = sum(where[kind] for where, _ in live.values())
                peak[kind] = max(peak[kind], total[kind])
            story.add(record, total["device"])
        away = sum(where["host"] + where["managed"] for where, ours in live.values() if ours)
        told = story.sums()
        sums |= {"peak_away_bytes": told["peak_bytes"], "peak_wanted_bytes": told["wanted_bytes"], "moves_us": told["moves_us"]}
        return sums | {"away_bytes": away} | {f"{kind}_bytes": size for kind, size in total.items()} | \
            {f"peak_{kind}_bytes": size for kind, size in peak.items()}

    def same(self, row, records):
        expected = self.by_log(records)
        self.assertEqual({name: row[name] for name in expected}, expected)

    def at_each_pause(self, words, pauses, **variables):
        running = self.start(words, **variables)
        rows = []
        for pause in range(1, pauses + 1):
            self.reach(pause)
            row = self.row(running.pid)
            # Routine lines may come later; what is in the file until the end is asked for by order.
            rows.append(row)
            self.go(pause)
        out, err = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, out + err)
        records = self.records()
        check_log(self, records)
        for row in rows:
            count = row["allocs"] + row["frees"] + row["demotions"] + row["promotions"]
            until = sorted(record["order"] for record in records if "order" in record)[:count]
            self.same(row, [record for record in records if record.get("order", 0) in until or
                            (record["kind"] == "oom" and row["ooms"])])
        return rows, records

    def test_spills_and_frees(self):
        words = "retain:0 alloc:a:4m:2 pause:1 alloc:b:4m:3 pause:2 free:a pause:3 free:b"
        rows, records = self.at_each_pause(words, 3)
        self.assertEqual([row["device_bytes"] // MIB for row in rows], [8, 12, 4])
        self.assertEqual([row["away_bytes"] // MIB for row in rows], [0, 8, 8])
        self.assertEqual([row["allocs"] for row in rows], [2, 5, 5])
        self.assertIsNone(rows[0]["last_decision"], "what fits is routine")
        last = rows[1]["last_decision"]
        spills = [r for r in records if r["kind"] == "alloc" and r["reason"] == "oom"]
        self.assertEqual({name: last[name] for name in ("count", "what", "place", "reason", "rule", "api", "caller", "dev")},
                         {"count": len(spills), "what": "spill"} |
                         {name: spills[-1][name] for name in ("place", "reason", "rule", "api", "caller", "dev")})
        self.assertEqual(last["bytes"], spills[-1]["host_bytes"])
        self.assertEqual(rows[2]["last_decision"], last, "a free is routine")
        self.assertEqual((rows[0]["program"], rows[0]["mode"], rows[0]["backend"], rows[0]["limit"]), ("script", "spill", "cuda", None))
        self.assertEqual(rows[0]["log"], str(self.log))

    def test_moves(self):
        words = "retain:0 alloc:a:4m:3 pause:1 alloc:b:4m:2 pause:2 free:b free:a pause:3"
        rows, records = self.at_each_pause(words, 3, **MOVED)
        self.assertEqual((rows[0]["demotions"], rows[1]["demotions"] > 0), (0, True))
        self.assertEqual((rows[0]["moves_us"], rows[1]["moves_us"] > 0), (0, True))
        last, move = rows[1]["last_decision"], [r for r in records if r["kind"] == "move" and r["what"] == "demote"][-1]
        self.assertEqual((last["what"], last["place"], last["bytes"], last["reason"]), ("demote", "host", move["bytes"], move["reason"]))

    def test_each_member_is_described(self):
        running = self.start("retain:0 alloc:a:4m:5 pause:1 free:a")
        self.reach(1)
        look = self.folder / "look.json"
        look.write_text(json.dumps(self.top("--filter", str(running.pid))))
        top = pathlib.Path(__file__).parents[2]
        done = subprocess.run([sys.executable, top / "tests/cli/members.py", top / "docs/commands.md", "top", look], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.go(1)

    def test_out_of_memory(self):
        rows, records = self.at_each_pause("retain:0 alloc:a:4m:3 alloc:b:4m:1 pause:1 free:a", 1, SPILL_OOM_CHAIN="")
        last, oom = rows[0]["last_decision"], [r for r in records if r["kind"] == "oom"][-1]
        self.assertEqual((rows[0]["ooms"], last["what"], last["bytes"]), (1, "oom", 4 * MIB))
        self.assertEqual((last["reason"], last["rule"]), (oom["refused_by"], oom["rule"]))

    def test_a_limit_and_observing(self):
        rows, _ = self.at_each_pause("retain:0 alloc:a:4m:3 pause:1 free:a", 1, SPILL_DEVICE_LIMIT="8MiB", SPILL_MODE="observe")
        self.assertEqual((rows[0]["mode"], rows[0]["limit"]), ("observe", 8 * MIB))
        self.assertEqual((rows[0]["last_decision"]["what"], rows[0]["last_decision"]["bytes"]), ("would spill", 4 * MIB))
        self.assertEqual(rows[0]["away_bytes"], 0)

    def test_two_devices(self):
        running = self.start("retain:0 alloc:a:4m:1 retain:1 alloc:b:4m:2 pause:1", SPILL_SIM_DEVICES="2")
        self.reach(1)
        rows = self.rows(running.pid, "--sort", "dev")
        self.assertEqual([(row["device"], row["dev"], row["device_bytes"] // MIB) for row in rows], [(0, 0, 4), (1, 1, 8)])
        devices = self.top()["devices"]
        self.assertEqual([(one["device_bytes"] // MIB, one["processes"], one["bytes"]) for one in devices],
                         [(4, 1, 14 * MIB), (8, 1, 14 * MIB)])
        self.go(1)

    def test_what_others_hold(self):
        """The management library says what is free; in this test it is that of a device of its own, with less memory."""
        running = self.start("retain:0 alloc:a:4m:2 pause:1 free:a")
        self.reach(1)
        uuid = self.records()[0]["devices"][0]["uuid"]

        def others(**variables):
            look = self.top("--filter", str(running.pid), env={"PATH": os.environ["PATH"], **variables})
            card, = [one for one in look["devices"] if one["uuid"] == uuid]
            return card["others_bytes"], card["device_bytes"]

        sim = {"LD_LIBRARY_PATH": os.environ["SIM_PATH"]}
        self.assertEqual(others()[0], None, "no management library")
        free = 2 * MIB  # other tests' programs may hold memory at the same time, on what looks like one device
        rest, held_now = others(SPILL_SIM_VRAM="2MiB", **sim)
        self.assertEqual(rest, max(14 * MIB - free - held_now, 0))
        self.assertEqual(others(SPILL_SIM_VRAM="14MiB", **sim)[0], 0, "never below nothing")
        self.assertEqual(others(SPILL_SIM_VRAM="2MiB", SPILL_SIM_FAIL="nvmlInit_v2:1:999", **sim)[0], None)
        self.assertEqual(others(SPILL_SIM_VRAM="2MiB", SPILL_SIM_CAPS="integrated", **sim)[0], None, "NVML does not know it there")
        text = subprocess.run([SPILL, "top", "--once"], capture_output=True, text=True, timeout=60, check=False,
                              env={"PATH": os.environ["PATH"], "SPILL_SIM_VRAM": "2MiB", **sim}).stdout
        self.assertIn(" by others", text)
        self.go(1)

    def test_others_by_name(self):
        """NVML lists pids. The library's own processes are not others, and numbers in a container are not its own."""
        running = self.start("retain:0 alloc:a:4m:2 pause:1 free:a")
        self.reach(1)
        here, gone = os.getpid(), 4194305  # more than the kernel's highest pid
        name = pathlib.Path("/proc/self/comm").read_text(encoding="utf-8").strip()
        named = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
        environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.environ["SIM_PATH"], "SPILL_SIM_HELD": str(9 * MIB),
                       "SPILL_SIM_VRAM": "14MiB", "SPILL_SIM_COMPUTES": f"{gone}: {running.pid}:4194304 {here}:3145728",
                       "SPILL_SIM_DRAWS": f"{here}:3145728 1:5242880"}
        uuid = self.records()[0]["devices"][0]["uuid"]

        def card():
            return next(one for one in self.top(env=environment)["devices"] if one["uuid"] == uuid)

        others = card()["others"]
        self.assertEqual([(one["pid"], one["bytes"]) for one in others], [(1, 5 * MIB), (here, 3 * MIB), (gone, None)])
        self.assertEqual([one["program"] for one in others[1:]], [name if named else None, None])
        text = subprocess.run([SPILL, "top", "--once"], capture_output=True, text=True, timeout=60, check=False, env=environment).stdout
        self.assertRegex(text, rf" by others \(.*pid 1\)? 5.00 MiB, {f'{name} .pid {here}.' if named else f'pid {here}'} 3.00 MiB, pid {gone}\)")
        environment["SPILL_SIM_COMPUTES"] = " ".join(f"{2000000 + i}:1024" for i in range(65))
        self.assertEqual([one["pid"] for one in card()["others"]], [1, here], "a list that is longer is not read")
        for function in ("Compute", "Graphics"):
            environment["SPILL_SIM_FAIL"] = f"nvmlDeviceGet{function}RunningProcesses_v3:1+:999"
            self.assertEqual(bool(card()["others"]), function == "Compute")
        self.go(1)

    def test_rates_need_two_looks(self):
        running = self.start("retain:0 alloc:a:4m:1 pause:1")
        self.reach(1)
        self.assertIsNone(self.row(running.pid)["moves_per_second"])
        row = self.row(running.pid, "--delay", "50ms")
        self.assertEqual((row["moves_per_second"], row["moved_bytes_per_second"]), (0, 0))

    def test_a_look_a_line(self):
        running = self.start("retain:0 alloc:a:4m:1 pause:1")
        self.reach(1)
        with subprocess.Popen([SPILL, "top", "--json", "--delay", "50ms", "--filter", str(running.pid)], stdout=subprocess.PIPE, text=True) as top:
            looks = [json.loads(top.stdout.readline()) for _ in range(3)]
            top.kill()
        self.assertEqual([look["rows"][0]["moves_per_second"] for look in looks], [None, 0, 0])


class Whose(TopCase):
    """Whose page it is, who has none, and who can change it."""

    def running(self, words="retain:0 alloc:a:4m:1 pause:1", **variables):
        process = self.start(words, **variables)
        self.reach(1)
        return process

    def test_nothing_where_nothing_is_to_be(self):
        for variables in ({"SPILL": "0"}, {"SPILL_MODE": "off"}):
            process = self.running(**variables)
            self.assertIsNone(descriptor(process.pid))
            self.assertEqual(self.rows(process.pid), [])
            self.go(1)
            process.communicate(timeout=60)
        process = self.running("retain:0 info pause:1")  # no GPU memory call that is ours to note
        self.assertEqual(self.rows(process.pid), [])

    def test_without_a_log(self):
        process = self.running(log="off")
        self.assertEqual((self.row(process.pid)["device_bytes"], self.row(process.pid)["log"]), (4 * MIB, None))

    def test_one_that_is_killed_is_gone(self):
        process = self.running()
        self.assertEqual(len(self.rows(process.pid)), 1)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.assertEqual(self.rows(process.pid), [])

    def test_the_seals_hold(self):
        """Nobody else can write the page or change its size."""
        process = self.running()
        path = descriptor(process.pid)
        before = self.row(process.pid)
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError:
            fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        for change in (lambda: os.pwrite(fd, b"x", 0), lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 1 << 20),
                       lambda: os.posix_fallocate(fd, 0, 1 << 20), lambda: os.truncate(path, 0),
                       lambda: fcntl.fcntl(fd, fcntl.F_ADD_SEALS, F_SEAL_WRITE)):
            with self.assertRaises(OSError):
                change()
        self.assertEqual(self.row(process.pid), before | {})

    def test_a_forked_child_is_not_its_parent(self):
        """It has the descriptor no more, and when it has a GPU of its own a page of its own."""
        environment = self.environment(SPILL_LOG="off")
        done = subprocess.run([str(PROGRAMS / "top_fork"), str(SPILL)], env=environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        looks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        pids = dict(line.split() for line in done.stdout.splitlines() if not line.startswith("{"))
        mine = [{row["pid"]: row for row in look["rows"] if str(row["pid"]) in pids.values()} for look in looks]
        parent, child, bare = (int(pids[name]) for name in ("parent", "child", "bare"))
        # A fork before the parent has a GPU; one behind that; a clone that no handler sees, with the page among its descriptors.
        self.assertEqual([set(look) for look in mine], [{child}, {parent}, {parent}])
        self.assertEqual(mine[0][child]["device_bytes"], 4 * MIB)
        self.assertEqual(mine[1][parent]["device_bytes"], 8 * MIB)
        self.assertEqual(mine[2][parent] | {"last_decision": None}, mine[1][parent] | {"last_decision": None})
        self.assertNotEqual(bare, parent)

    def test_a_program_that_closes_everything(self):
        """It goes on, and is not seen any more."""
        done = subprocess.run([str(PROGRAMS / "top_fork"), str(SPILL), "closes"], env=self.environment(SPILL_LOG="off"),
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        looks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        pids = dict(line.split() for line in done.stdout.splitlines() if not line.startswith("{"))
        self.assertEqual([[row["pid"] for row in look["rows"] if str(row["pid"]) == pids["parent"]] for look in looks],
                         [[int(pids["parent"])], []])

    def test_in_a_container(self):
        """Its pid is another inside, and it is found all the same."""
        prefix = ["unshare", "--fork", "--pid", "--mount-proc"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespace can be made here")
        self.start("retain:0 alloc:a:4m:1 pause:1", prefix=prefix)
        self.reach(1)
        (row,) = [row for row in self.top()["rows"] if row["log"] == str(self.log)]
        self.assertEqual(row["pid_inside"], 1)
        self.assertNotEqual(row["pid"], 1)
        self.assertEqual(row["device_bytes"], 4 * MIB)
        self.go(1)


def looks_like_a_page(seals, content):
    """A memfd of that name in this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.memfd_create(b"spill-counters", 3)
    os.write(fd, bytes(content))
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


class Hostile(TopCase):
    def test_pages_of_others(self):
        for seals, content in ((fcntl.F_SEAL_SHRINK, b""), (fcntl.F_SEAL_GROW, b"x" * 100000), (fcntl.F_SEAL_SHRINK, b"x" * 100000)):
            fd = looks_like_a_page(seals, content)
            done = subprocess.run([SPILL, "top", "--once", "--json"], capture_output=True, text=True, timeout=60, check=False)
            os.close(fd)
            look = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0 if look["rows"] else 1, "a finding if nothing else was found")
            self.assertGreater(look["not_readable"], 0)
            self.assertEqual([row for row in look["rows"] if row["pid"] == os.getpid()], [])

    def test_many_pages_of_one_process(self):
        """It is one row, with the first of them."""
        process = self.start("retain:0 alloc:a:4m:1 pause:1")
        self.reach(1)
        page = bytearray(descriptor(process.pid).read_bytes())
        at = 16  # struct spill_live_page_head
        self.assertEqual(struct.unpack_from("I", page, at)[0], process.pid)
        struct.pack_into("I", page, at, os.getpid())
        for _ in range(100):
            self.addCleanup(os.close, looks_like_a_page(fcntl.F_SEAL_SHRINK, page))
        self.assertEqual((len(self.rows(os.getpid())), len(self.rows(process.pid))), (1, 1))


HELP = """\
spill top: what programs hold through libspill

  P           sort by PID
  U           sort by USER
  N           sort by PROGRAM
  D           sort by DEVICE
  H           sort by HOST
  M           sort by MANAGED
  S           sort by SPILLED
  L           sort by LIMIT
  V           sort by MOVES/s
  B           sort by MOVED/s
  O           sort by OOMS
  < >         sort by the next column on the left, on the right
  r           reverse the order
  /           filter by program, user or pid; Enter keeps, Esc drops it
  up down     select a row (PgUp, PgDn, Home, End); below is more about it
  q           quit

SPILLED: off the device now by libspill's doing; part of HOST and MANAGED.
HOST, MANAGED: also memory that the program itself asked for there.
+ in a device's line: of other programs and of contexts and code, theirs too.

any key goes back"""


@unittest.skipUnless(pyte, "no python3-pyte here")
class View(TopCase):
    """`spill top` on a terminal of this test's own."""

    def setUp(self):
        super().setUp()
        # Where alone.sh cannot hide others, those of this test have a name of their own.
        self.name = f"job{os.getpid()}"
        shutil.copy(PROGRAMS / "script", self.folder / self.name)
        self.programs = [self.start(f"retain:0 alloc:a:{size}m:1 pause:{size}", program=self.folder / self.name, log=self.folder / f"log{size}", SPILL_DEVICE_LIMIT="3MiB")
                         for size in (2, 6, 4)]
        for size in (2, 6, 4):
            self.reach(size)
        self.by_size = {size: process.pid for size, process in zip((2, 6, 4), self.programs, strict=True)}

    def open(self, *arguments, rows=24, columns=80, term="linux", **variables):
        """By default what pyte is an image of."""
        self.terminal, self.other_end = os.openpty()
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.close, self.other_end)
        self.resize_terminal(rows, columns)
        self.usual = termios.tcgetattr(self.other_end)
        environment = {"TERM": term, "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], **variables}
        self.shown = subprocess.Popen([SPILL, "top", "--filter", self.name, *arguments], stdin=self.other_end, stdout=self.other_end, stderr=self.other_end,
                                      env=environment, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.addCleanup(self.shown.wait)
        self.addCleanup(self.shown.kill)
        self.ended = os.pidfd_open(self.shown.pid)
        self.addCleanup(os.close, self.ended)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""

    def read(self):
        """More of what it writes; False at its end."""
        ready, _, _ = select.select([self.terminal, self.ended], [], [], 20)
        self.assertTrue(ready, "nothing comes:\n" + "\n".join(self.screen.display))
        if self.terminal not in ready:
            return False
        part = os.read(self.terminal, 64)  # few, so that a test that looks at half a screen fails each time
        self.output += part
        self.stream.feed(part)
        return True

    def until(self, condition, what):
        """The first screen that is so; each look makes another, so somebody must give up."""
        end = time.monotonic() + 20
        while not condition(self.screen.display):
            self.assertTrue(self.read() and time.monotonic() < end, f"no {what}:\n" + "\n".join(self.screen.display))

    def shows(self, text):
        self.until(lambda lines: any(text in line for line in lines), text)

    def whole(self, *sizes):
        """The lines of the first screen with all of its lines. A terminal hands them over in parts; the keys come last."""
        self.ordered(*sizes)
        self.shows("q quit")
        return [line.rstrip() for line in self.screen.display]

    def key(self, text):
        os.write(self.terminal, text.encode())

    def order(self, lines):
        """Our programs in the order of the table."""
        pids = [line.split()[0] for line in lines if line.split()]
        sizes = {str(pid): size for size, pid in self.by_size.items()}
        return [sizes[pid] for pid in pids if pid in sizes]

    def ordered(self, *sizes):
        self.until(lambda lines: self.order(lines) == list(sizes), f"order {sizes}")

    def status(self):
        """When it has ended: its exit status."""
        while self.read():
            pass
        return self.shown.wait()

    def leaves(self):
        self.key("q")
        return self.status()

    def test_what_it_shows(self):
        self.open("--sort", "spilled")
        lines = self.whole(6, 4, 2)
        self.assertRegex(lines[0], r"^spill top  \d+ process.* on 1 device, every 1 s +\d\d:\d\d:\d\d$")
        self.assertRegex(lines[1], r"^0 Simulated GPU +\[\|+ *\] +[0-9.]+[MG] of 14.0M, .*spilled [0-9.]+[MG]$")
        self.assertEqual(lines[2].split(), "PID PROGRAM DEV DEVICE HOST MANAGED SPILLED MOVES/s LAST DECISION".split())
        row = next(line for line in lines if line.split() and line.split()[0] == str(self.by_size[6]))
        self.assertRegex(row, r"^ *\d+ job\d+ +0 +0 +6.00M +0 +6.00M +[-0] \d+s spill 6.00M")
        self.assertTrue(all(len(line) <= 80 for line in lines))
        self.assertRegex(lines[-2], r"^log:  /")
        self.assertRegex(lines[-3], r"^last: \d+s spill 6.00M split limit, rule default, cuMemAlloc_v2, job\d+\+0x")
        self.assertEqual(self.leaves(), 0)

    def test_the_cost_of_moves(self):
        self.start("retain:0 alloc:a:4m:6 pause:9", program=self.folder / self.name, log=self.folder / "moves", **MOVED)
        self.reach(9)
        self.open("--sort", "spilled")
        self.shows("; moves held the program up for ")
        self.key("\x1b[B")  # the row below has moved nothing
        self.until(lambda lines: not any("moves held" in line for line in lines), "row without moves")
        self.assertEqual(self.leaves(), 0)

    def test_80_columns(self):
        """Each line is whole: with what others hold, limit and spilled bytes, and the end of a long path."""
        self.open("--sort", "spilled", LD_LIBRARY_PATH=os.environ["SIM_PATH"], SPILL_SIM_VRAM="2MiB")
        lines = self.whole(6, 4, 2)
        self.assertRegex(lines[1], r"^0 Simulated GPU +\[\|*\+* *\] +[0-9.]+[MG]? \+[0-9.]+[MG]? of 14.0M, .*spilled [0-9.]+[MG]$")
        self.assertRegex(lines[-6], r"^most: .* placed off card, \d+ out of memory$")
        self.assertRegex(lines[-5], r"^moves: \d+ out \(\S+\), \d+ back \(\S+\)$")
        self.assertEqual(lines[-4], "reads: the time that kernels lost by reading it there is not known")
        self.assertRegex(lines[-2], r"^log:  .*/log6$")
        self.assertEqual(self.leaves(), 0)
        self.open("--sort", "spilled", columns=26)
        self.ordered(6, 4, 2)
        self.shows(".../")
        self.shows("/log6")
        self.assertEqual(self.leaves(), 0)

    def test_keys(self):
        self.open()
        self.shows("sort by device")
        self.key("S")
        self.ordered(6, 4, 2)
        self.key("r")
        self.ordered(2, 4, 6)
        self.shows("spilled (reversed)")
        self.key("r")
        self.key("P")
        self.ordered(*sorted(self.by_size, key=self.by_size.get))
        self.key(">")
        self.shows("sort by program")
        self.key("<<")
        self.shows("sort by decision")
        self.key("h")
        self.shows("any key goes back")
        self.assertEqual("\n".join(line.rstrip() for line in self.screen.display), HELP)  # all of it, in 80 columns
        self.key(" ")
        self.shows("sort by decision")
        self.key("P\x1b[B")  # the row below
        second = sorted(self.by_size.values())[1]
        self.shows(f"{self.name} (pid {second}, ")
        self.assertEqual(self.leaves(), 0)

    def test_filter(self):
        self.open("--sort", "spilled")
        self.ordered(6, 4, 2)
        self.key("/" + "\x7f" * 20 + str(self.by_size[4]))
        self.ordered(4)
        self.key("\x7f" * 20 + "nobody")
        self.shows("no process matches the filter")
        self.key("\x1b")
        self.ordered(6, 4, 2)
        self.key("/" + self.name.upper() + "\r")
        self.shows("filter: " + self.name.upper())
        self.ordered(6, 4, 2)
        self.assertEqual(self.leaves(), 0)

    def test_who_ends_vanishes(self):
        self.open("--sort", "spilled", "--delay", "50ms")
        self.ordered(6, 4, 2)
        self.go(4)
        self.ordered(6, 2)
        self.assertEqual(self.leaves(), 0)

    def resize_terminal(self, rows, columns):
        fcntl.ioctl(self.other_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.resize_terminal(rows, columns)

    def test_other_sizes(self):
        self.open("--sort", "spilled")
        self.ordered(6, 4, 2)
        self.resize(30, 130)
        self.shows("LIMIT MOVES/s MOVED/s OOMS LAST DECISION")
        self.shows("split limit, rule")
        self.resize(8, 40)
        self.until(lambda lines: any(line.split() == ["PID", "PROGRAM", "DEVICE", "SPILLED"] for line in lines), "a narrow one")
        self.ordered(6, 4, 2)
        self.assertFalse(any("last: " in line for line in self.screen.display))
        self.resize(3, 10)
        self.resize(1, 1)
        self.resize(24, 80)
        self.shows("LAST DECISION")
        self.assertEqual(self.leaves(), 0)

    def test_the_terminal_is_as_it_was(self):
        """Also after a signal: the other screen is left, the cursor is seen, lines are echoed."""
        for end in (None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.open(term="xterm-256color")
            self.shows("q quit")
            self.assertNotEqual(termios.tcgetattr(self.other_end), self.usual)
            if end:
                self.shown.send_signal(end)
            else:
                self.key("q")
            self.assertEqual(self.status(), 0)
            self.assertEqual(termios.tcgetattr(self.other_end), self.usual)
            self.assertIn(b"\x1b[?1049l", self.output)
            self.assertGreater(self.output.rindex(b"\x1b[?25h"), self.output.rindex(b"\x1b[?25l"))

    def test_terminals_without_colours_and_unknown_ones(self):
        self.open("--sort", "spilled", term="vt100")
        self.ordered(6, 4, 2)
        self.assertNotRegex(self.output, rb"\x1b\[[0-9;]*3[0-9]m")
        self.assertEqual(self.leaves(), 0)
        self.open(term="no-such-terminal")
        self.assertEqual(self.status(), 2)
        self.assertIn(b"--once or --json", self.output)


if __name__ == "__main__":
    unittest.main()

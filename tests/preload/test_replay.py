"""spill replay predicts what libspill really does: a program is recorded on a large device, the recording is decided again under another
policy on a small one, and then the program is really run so.

Every request must have been put where the replay says, with as much of it off the device, and the sums must be the same: the peak of
each place, what spilled, and the first out of memory. What is not predicted is left out here: memory comes back when a program submits
work and nothing left the device for a while, which goes by the clock (so nothing here runs kernels after memory has moved); and what
follows the first out of memory, as the program then asks for something else.
"""
import json
import os
import random
import re
import subprocess
import unittest

from harness import KERNELS, MIB, PROGRAMS, SPILL, in_order
from scripted import ScriptCase

LARGE = "1GiB"
SEEDS = range(int(os.environ.get("SPILL_REPLAY_SEEDS", "40")))
WHERE = {"device": "device", "movable": "device", "split": "split", "managed": "managed", "host": "host"}


def whereabouts(records):
    """Of each request, in order: its size, where it was over its life, bytes off the device at most. Up to the first out of memory."""
    found, by_seq = [], {}
    for record in records:
        if record["kind"] == "oom":
            found.append([record["bytes"], "out of memory", 0])
            break
        if record["kind"] == "alloc":
            found.append([record["bytes"], WHERE[record["place"]], record.get("host_bytes", 0) + record.get("managed_bytes", 0)])
            by_seq[record["seq"]] = found[-1]
        elif record["kind"] == "move" and record["what"] == "demote":
            one = by_seq[record["seq"]]
            one[1] = "moved out" if one[1] == "device" else one[1]
            one[2] = max(one[2], record["host_bytes"])
    return found


class Recorded(ScriptCase):
    """Records a program, predicts it, runs it."""

    def record(self, words, **variables):
        self.log.unlink(missing_ok=True)
        self.script(words, SPILL_SIM_VRAM=LARGE, **variables)
        return self.without_time("recording.jsonl")

    def without_time(self, name="again.jsonl"):
        """The log as if no time had passed: what is on the host comes back when the program submits work later, and here it does not."""
        copy = self.folder / name
        copy.write_text(re.sub(r'"t":[0-9.]+', '"t":0.000001', self.log.read_text(encoding="utf-8")), encoding="utf-8")
        return copy

    def really(self, words, policy, **variables):
        """What is really done. Returns the log's records."""
        self.log.unlink(missing_ok=True)
        self.script(words, SPILL_POLICY=policy, **variables)
        return self.checked_records()

    def predict(self, recording, policy, *options):
        """policy: None is the recording's own."""
        under = ("--policy", policy) if policy else ()
        done = subprocess.run([SPILL, "replay", recording, *under, "--json", "--list", *options], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.stderr, "")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if answer["fits"] else 1)
        (run,) = answer["runs"]
        self.assertEqual((run["fits"], run["judged"]), (not run["refused"], True))
        return run

    def write(self, text):
        path = self.folder / "policy.conf"
        path.write_text(text, encoding="utf-8")
        return path

    def up_to(self, recording, requests):
        """The recording, cut behind so many requests: behind the first out of memory the program asks for something else."""
        lines, seen = [], 0
        for line in recording.read_text(encoding="utf-8").splitlines(keepends=True):
            lines.append(line)
            seen += json.loads(line)["kind"] == "alloc"
            if seen == requests:
                break
        cut = self.folder / "cut.jsonl"
        cut.write_text("".join(lines), encoding="utf-8")
        return cut

    def compare(self, recording, policy, options, records):
        """What was really done is what is predicted."""
        recorded = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
        before, real = whereabouts(recorded), whereabouts(records)
        ended = real[-1][1] == "out of memory"
        run = self.predict(self.up_to(recording, len(real)) if ended else recording, policy, *options)
        seqs = [record["seq"] for record in recorded if record["kind"] == "alloc"]
        elsewhere = {one["seq"]: one for one in run["elsewhere"]["list"]}
        for at, (size, where, away) in enumerate(real):
            self.assertEqual(before[at][0], size, "the programs ask for the same")
            told = elsewhere.get(seqs[at], {"to": before[at][1], "off_device": before[at][2]})
            self.assertEqual((told["to"], told["off_device"]), (where, away), f"request {at} of {size} bytes")
        self.assertEqual((run["fits"], run["refused"]), (not ended, int(ended)))
        if ended:
            oom = next(record for record in records if record["kind"] == "oom")
            for name in ("bytes", "caller", "api", "rule"):
                self.assertEqual(run["first"][name], oom[name])
            self.assertEqual(run["first"]["live"], oom["live"])
            return
        end = records[-1]
        for name in ("peak", "spilled", "spills", "demotions", "demoted_bytes"):
            self.assertEqual(run[name], end[name], name)
        self.again(records[-1], options)

    def again(self, end, options):
        """What was just done, decided again under its own policy on its own card, is what it was."""
        options = list(options)
        del options[:2]  # --vram: the log has it
        run = self.predict(self.without_time(), None, *options)
        self.assertEqual((run["elsewhere"]["list"], run["options_not_recorded"]), ([], ""))
        for name in ("peak", "spilled", "spills", "demotions", "demoted_bytes"):
            self.assertEqual(run[name], end[name], name)


class Chance:
    """A program and a policy by chance: allocations of all sizes and frees, in any order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.vram = self.random.choice((48, 64, 96))

    def words(self):
        words, live, free = ["retain:0"], [], list("abcdefghijklmnopqrst")
        shared = self.random.choice(("4k", "700k", "1m"))  # of one size: of blocks with different rests the driver chooses
        for _ in range(self.random.randint(4, 24)):
            if live and self.random.random() < 0.3:
                words.append(f"free:{live.pop(self.random.randrange(len(live)))}")
            elif free:
                letter = free.pop(0)
                size = self.random.choice((shared, shared, "1500k", "3m", "5m", "8m", "20m", "33m"))
                small = size == shared
                words.append(f"alloc:{letter}:{size}:{self.random.randint(1, 12) if small else self.random.choice((1, 1, 2, 3))}")
                live += [] if small else [letter]  # no holes in blocks that small ones share: which they fill is the driver's affair
        return " ".join(words)

    def size(self, *mib):
        return f"{self.random.choice(mib)}MiB"

    def rule(self, name):
        lines = [f"[rule {name}]"]
        if self.random.random() < 0.7:
            lines.append(self.random.choice(("size = 2MiB..", "size = ..2MiB", "size = 4MiB..10MiB", "api = cuMemAlloc*", "caller = script", "growth = yes",
                                             "caller = nobody")))
        acts = {"place": ("device", "movable", "split", "managed", "host"), "over": ("split", "managed", "host", "refuse"),
                "cap": ("0", "8MiB", "20MiB", "32MiB"), "priority": ("hot", "cold")}
        for key in self.random.sample(sorted(acts), self.random.randint(1, 3)):
            lines.append(f"{key} = {self.random.choice(acts[key])}")
        return lines

    def policy(self):
        lines = ["[device]", "reserve = 0"]
        if self.random.random() < 0.4:
            lines.append(f"limit = {self.random.choice(('75%', '40MiB', '30MiB'))}")
        lines += ["[host]", f"limit = {self.size(16, 64, 512)}", "reserve = 0", "[managed]", "prefetch_below = 0", "[movable]", "wait = 30s", f"chunk = {self.size(2, 4, 64)}",
                  f"enable = {self.random.choice(('auto', 'auto', 'on', 'off'))}"]
        if self.random.random() < 0.3:
            chain = self.random.choice(("", "split", "host", "managed", "demote, host", "trim, demote"))
            lines += ["[oom]", f"chain = {chain}"]
        for name in "abc"[:self.random.choice((0, 0, 1, 2, 3))]:
            lines += self.rule(name)
        return "\n".join(lines) + "\n"


class ByChance(Recorded):
    movable = None

    def one(self, seed):
        chance = Chance(seed)
        words, text, can = chance.words(), chance.policy(), chance.random.choice(("", "", "novmm"))
        policy, recording = self.write(text), self.record(words)
        with self.subTest(seed=seed, words=words, policy=text, vram=chance.vram, can=can):
            options = ["--vram", f"{chance.vram}MiB", *(("--without", "vmm") if can else ())]
            self.compare(recording, policy, options, self.really(words, policy, SPILL_SIM_VRAM=f"{chance.vram}MiB", SPILL_SIM_CAPS=can))

    def test_as_predicted(self):
        for seed in SEEDS:
            self.one(seed)


class OneByOne(Recorded):
    """What chance leaves out."""

    movable = None

    def check(self, words, text, vram, *options, **variables):
        policy, recording = self.write(text), self.record(words)
        records = self.really(words, policy, SPILL_SIM_VRAM=vram, **variables)
        options = ["--vram", vram, *options]
        self.compare(recording, policy, options, records)
        return self.predict(recording, policy, *options), records

    def test_managed_memory_that_is_brought_to_the_device(self):
        run, _ = self.check("retain:0 alloc:a:4m alloc:b:40m", "[rule a]\nplace = managed\n[device]\nreserve = 0\n", "32MiB")
        self.assertEqual(run["peak"]["device_bytes"], 4 * MIB, "what fits and is small")

    def test_small_ones_of_several_sizes_share_our_chunks(self):
        run, _ = self.check("retain:0 alloc:a:700k:13 alloc:b:1m:9 alloc:c:4k:20 alloc:d:700k:3 alloc:e:1m:8", "[rule a]\nplace = host\n", "64MiB")
        self.assertGreater(run["peak"]["host_bytes"], 24 * MIB)
        self.assertEqual(run["peak"]["device_bytes"], 0)

    def test_the_reserve_is_kept(self):
        run, records = self.check("retain:0 alloc:a:8m:8", "[movable]\nenable = on\nwait = 30s\nchunk = 2MiB\n[device]\nreserve = 16MiB\n", "64MiB")
        self.assertEqual({record["reason"] for record in records if record["kind"] == "move"}, {"reserve"})
        self.assertEqual(run["demoted_bytes"], 16 * MIB)

    def test_the_smallest_limit_is_the_smallest(self):
        """The real program at both limits, and one granule below."""
        words = "retain:0 alloc:a:6m:3 free:a alloc:b:9m:2 alloc:c:3m:2"
        plain = "[movable]\nenable = off\n[oom]\nchain = host\n[rule keep]\nsize = 8MiB..\nover = refuse\n"
        (device,) = self.predict(self.record(words), self.write(plain))["devices"]
        self.assertEqual(device["limit_all"], 2 * 10 * MIB + 2 * 4 * MIB)
        for limit, spills, ooms in ((device["limit_all"], False, False), (device["limit_all"] - 1, True, False),
                                    (device["limit_least"], True, False), (device["limit_least"] - 2 * MIB, False, True)):
            with self.subTest(limit=limit):
                end = self.really(words, self.write(plain + f"[device]\nlimit = {limit}\n"), SPILL_SIM_VRAM=LARGE)[-1]
                self.assertEqual((end["ooms"] > 0, end["spills"] > 0 and not end["ooms"]), (ooms, spills))


if __name__ == "__main__":
    unittest.main()

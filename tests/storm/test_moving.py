"""Chunks move while kernels and copies are in flight: no byte is lost, nothing touches what is not mapped, nothing hangs.

STORM_SECONDS: how long (8), and then until something has moved. A half of it is with two devices, and a half of each half with
memory that follows its use (movable.follow); a further part of it with flights. STORM_SEED: the first seed. Each round has devices and a policy of its own. The
simulator pauses where a driver takes its time (SPILL_SIM_JITTER), so that work which slips past the gate meets memory that is
away.
"""
import collections
import os
import random
import re
import subprocess
import time
import unittest

from harness import LIBRARY, KERNELS, Case
from sanitizers import SANITIZERS

SECONDS = int(os.environ.get("STORM_SECONDS", "8"))
SEED = int(os.environ.get("STORM_SEED", "1"))
ROUND = 60  # seconds, at most
# Moves of the first round, however slow the machine is, by movable.follow and devices. "second": from the second device.
# "ordered", "returned": of segments, which have memory in stream order; to the host, and back.
ENOUGH = {("off", 1): {"demote": 10, "promote": 1, "ordered": 3}, ("on", 1): {"demote": 10, "use": 5, "ordered": 3, "returned": 3},
          ("overlap", 1): {"demote": 10, "use": 5, "ordered": 3},
          ("overlap", 2): {"demote": 10},
          ("off", 2): {"demote": 10, "second": 3, "ordered": 3}, ("on", 2): {"use": 5, "second": 3, "ordered": 3, "returned": 3}}
# What they are in a line of the log. A segment has a number, and no address (engine_ordered.c).
SEGMENT = re.compile('"kind":"alloc"[^\n]*?"seq":(\\d+)[^\n]*?"ptr":"0x5e8[0-9a-f]{13}"')
MOVE = re.compile('"kind":"move"[^\n]*?"seq":(\\d+)[^\n]*?"what":"(demote|promote)"[^\n]*?"dev":(\\d)[^\n]*?"reason":"(\\w+)"')
PATIENCE = 120  # seconds more, for that
HOW = os.environ["STORM_HOW"]


def policy(seed, follow, devices):
    """What a round is like: (MiB of each device, MiB of its largest block, environment)."""
    rng = random.Random(seed)
    card, largest = rng.choice([(192, 12), (192, 40), (256, 64), (512, 200)]) if seed != SEED else (192, 40)
    reserve = rng.choice(["0", "8MiB", "24MiB"])
    # Code that finds no room at its first load is spoilt for good: where it takes some, the reserve must be there.
    room = "module:2MiB,stream:1MiB,event:64KiB,exec:1MiB" + (",function:1MiB" if reserve == "24MiB" else "")
    variables = {
        "SPILL_MOVABLE_ENABLE": "on", "SPILL_MOVABLE_FOLLOW": follow, "SPILL_MOVABLE_CHUNK": rng.choice(["2MiB", "4MiB", "8MiB"]),
        # Longer than the default at times, so that something moves on a machine with few cores, too.
        "SPILL_MOVABLE_WAIT": rng.choice(["50ms", "300ms", "300ms"]),
        "SPILL_DEVICE_RESERVE": reserve,
        "SPILL_HOST_AHEAD": rng.choice(["0", "0", "16MiB"]), "SPILL_HOST_LIMIT": "8GiB", "SPILL_HOST_RESERVE": "64MiB",
        "SPILL_OOM_HONEST_FIRST": "off", "SPILL_SIM_VRAM": f"{card}MiB",
        "SPILL_SIM_DEVICES": str(devices), "MOVING_DEVICES": str(devices),
        "SPILL_SIM_JITTER": rng.choice(["0", "300", "1000"]) if seed != SEED else "500",
        "SPILL_SIM_ROOM": rng.choice(["", room])}
    # Access between the devices, by the program and to default pools; in the first round with it and without it.
    variables["MOVING_PEERS"] = rng.choice(["0", "1"]) if seed != SEED else "1" if follow == "off" else "0"
    variables["MOVING_SHARE"] = rng.choice(["0", "1"]) if seed != SEED else "1"
    # Small allocations may use the reserve up, and work that then needs room fails as natively if nothing gives way in this
    # time, which the storm takes for wrong: longer than a thread of a busy machine holds its kernel.
    if variables["SPILL_SIM_ROOM"]:
        variables["SPILL_MOVABLE_WAIT"] = "2s"
    return card, largest, variables


class Moving(Case):
    def moved(self):
        """Moves by kind, as far as the log has them."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        segments, moves = set(SEGMENT.findall(text)), collections.Counter()
        for seq, what, device, reason in MOVE.findall(text):
            moves[what] += 1
            moves["second"] += (what, device) == ("demote", "1")
            moves["use"] += (what, reason) == ("promote", "use")
            if seq in segments:
                moves["ordered" if what == "demote" else "returned"] += 1
        return moves

    def run_until_enough(self, command, environment, seconds, enough):
        """The program goes on while its input is open: until it was long enough and enough has moved."""
        begin, hung = time.monotonic(), False
        with open(self.folder / "said", "w+", encoding="utf-8") as said, \
             subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT) as program:
            while program.poll() is None and (passed := time.monotonic() - begin) < seconds + PATIENCE and (
                    passed < seconds or any(self.moved()[what] < count for what, count in enough.items())):
                time.sleep(0.5)
            program.stdin.close()
            try:
                program.wait(timeout=120)
            except subprocess.TimeoutExpired:
                hung = True
                program.kill()
            program.wait()
            said.seek(0)
            return program.returncode, said.read(), hung

    def storm(self, seed, seconds, enough, follow, devices, **more):
        card, largest, variables = policy(seed, follow, devices)
        variables |= more
        command = [os.environ["STORM"], KERNELS, str(seed), str(seconds), str(card), str(largest), "input"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LD_LIBRARY_PATH": os.environ["SIM_PATH"],
                       "SPILL_LOG": str(self.log), "SPILL_LOG_METRICS": str(self.log.with_suffix(".prom")), "SPILL_HOST_SHARE": "no", **SANITIZERS, **variables}
        if HOW == "preload":
            environment["LD_PRELOAD"] = LIBRARY
        again = f"seed {seed}: {variables} {' '.join(command)} < /dev/null"
        status, said, hung = self.run_until_enough(command, environment, seconds, enough)
        self.assertFalse(hung, f"hangs: {again}\n{said}\n" + "\n".join(self.log.read_text().splitlines()[-20:]) if hung else "")
        self.assertEqual(status, 0, again + "\n" + said)
        self.assertIn("all bytes right", said)
        records = self.checked_records()
        self.assertEqual(set(records[-1]["live"].values()), {0}, "nothing is left in the ledger")
        self.assertEqual("SPILL_LOG_MAX" in more, "drop" in [record["kind"] for record in records])
        moves = self.moved()
        print(f"seed {seed} on {devices}: {moves['demote']} demotions, {moves['promote']} promotions, {moves['use']} for use; "
              f"of segments {moves['ordered']} and {moves['returned']}; "
              f"{records[-1]['demoted_bytes'] >> 20} and {records[-1]['promoted_bytes'] >> 20} MiB\n{said}", flush=True)
        self.log.unlink()
        return moves

    def rounds(self, follow, devices, **more):
        wanted = ENOUGH[follow, devices]
        seconds = max(SECONDS // 4, 2)
        end, seed, moves, enough = time.monotonic() + seconds, SEED, collections.Counter(), wanted
        while (left := int(end - time.monotonic())) > 0:
            how = "auto" if follow == "on" and (seed - SEED) % 2 else follow
            moves += self.storm(seed, min(left, ROUND), enough, how, devices, **more)
            seed, enough = seed + 1, {}
        for what, count in wanted.items():
            self.assertGreaterEqual(moves[what], count, f"too few of {what} in {seconds + PATIENCE} s")

    def test_no_byte_is_lost(self):
        self.rounds("off", 1)

    def test_no_byte_is_lost_where_residency_follows_use(self):
        self.rounds("on", 1)

    def test_no_byte_is_lost_on_two_devices(self):
        self.rounds("off", 2)

    def test_no_byte_is_lost_beside_running_work(self):
        """Kernels keep the promise: they find no address in memory."""
        self.rounds("overlap", 1, MOVING_ALL_NAMED="1")

    def test_no_byte_is_lost_where_two_devices_forbid_flights(self):
        self.rounds("overlap", 2, MOVING_ALL_NAMED="1")

    def test_no_byte_is_lost_on_two_devices_where_residency_follows_use(self):
        self.rounds("on", 2)

    def test_the_sums_of_what_the_log_leaves_out_are_right(self):
        """From the middle of all that: lines of some threads are in the log, those of others of the same moment in the sums."""
        for devices, size in (1, "0"), (2, "8KiB"):
            self.storm(SEED, 2, {}, "on", devices, SPILL_LOG_MAX=size)


del Case
if __name__ == "__main__":
    unittest.main()

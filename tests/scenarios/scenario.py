"""What the tests of the five scenarios share. A scenario is a program on a device that is too small for it, and a shipped profile.

On the simulated GPU a device is small because it has so little memory; and, which is how a real one is made small
(scripts/gpu-test Scenarios), by device.limit. Sizes are those of docs/scenarios.md divided by a scale: the sizes in the
text of the profile are, too, and nothing else in it is touched.
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload"))
from harness import KERNELS, LIBRARY, MIB, SPILL, Case, apart, decided, held, in_order  # noqa: E402, F401

SCENARIOS = pathlib.Path(os.environ["SCENARIOS"])
PROFILES = pathlib.Path(__file__).resolve().parent.parent.parent / "policy/profiles"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
GRANULE = 2 * MIB


def up(size, unit=GRANULE):
    return -(-size // unit) * unit


def profile(name, scale=1, *, without=(), given=()):
    """The text of a profile with its sizes divided by `scale`, less the rules `without`, with (old, new) of `given` replaced."""
    text = (PROFILES / f"{name}.conf").read_text(encoding="utf-8")
    for old, new in given:
        assert old in text, f"{name}: {old}"
        text = text.replace(old, new)
    sections = re.split(r"(?m)^(?=\[)", text)
    sections = [section for section in sections if not any(section.startswith(f"[rule {rule}]") for rule in without)]
    lines = "".join(sections).splitlines()
    size = re.compile(r"(\d+(?:\.\d+)?)(KiB|MiB|GiB)")
    scaled = [line if line.startswith("#") else
              size.sub(lambda found: str(int(float(found[1]) * UNITS[found[2]] / scale)), line) for line in lines]
    return "\n".join(scaled) + "\n"


class Scenario(Case):
    """The device is as small as it says."""

    @staticmethod
    def taken(sizes):
        """What plain allocations take of the device: up to 1 MiB they share blocks of 2 MiB in pieces of 512 bytes."""
        free = []
        for size in (up(size, 512) for size in sizes if size <= MIB):
            fitting = [i for i, left in enumerate(free) if left >= size]
            if fitting:
                free[fitting[0]] -= size
            else:
                free.append(GRANULE - size)
        return GRANULE * len(free) + sum(up(size) for size in sizes if size > MIB)

    # Movable memory is what makes most profiles unnecessary: these devices have none.
    CAPS = "novmm"

    def small(self, size, **variables):
        """Variables of a run on a device of so many bytes."""
        return {"SPILL_SIM_VRAM": str(size), "SPILL_SIM_CAPS": self.CAPS, **variables}

    def alone(self, command, size, **variables):
        """A run without the profile: without the library at all."""
        return self.run_program(command, preload=False, **self.small(size, **variables))

    def with_policy(self, command, size, text, **variables):
        """A run with that policy. Returns it and, where it has a log, its records."""
        path = self.folder / "policy.conf"
        path.write_text(text, encoding="utf-8")
        return self.logged(command, size, SPILL_POLICY=path, **variables)

    def logged(self, command, size, **variables):
        self.log.unlink(missing_ok=True)
        done = self.run_program(command, **self.small(size, **variables))
        return done, self.checked_records() if self.log.exists() else []

    def right(self, done):
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "all data right")


class Limited(Scenario):
    """The device is large, and the process may not have more of it than a limit. What runs on a real GPU."""

    CAPS = ""
    movable = "off"

    @staticmethod
    def taken(sizes):
        """What the limit is charged with."""
        return sum(up(size, 512 if size <= MIB else GRANULE) for size in sizes)

    def small(self, size, **variables):
        return {"SPILL_SIM_VRAM": "8GiB", "SPILL_DEVICE_LIMIT": str(size), **variables}

    def alone(self, command, size, **variables):
        """The limit alone: there is nowhere to spill to."""
        return self.logged(command, size, SPILL_OOM_CHAIN="", SPILL_MOVABLE_ENABLE="off", **variables)[0]


def surfaced(records):
    """The out of memory that the program saw."""
    return [record for record in records if record["kind"] == "oom"]


def placed(records, rule):
    """The allocations that a rule decided."""
    return [record for record in decided(records) if record.get("rule") == rule]


def total(records, kind):
    return sum(held(record)[kind] for record in records)


def peak(records):
    """What the process held at most, less the words that the programs have pinned all the time."""
    pinned = total([record for record in records if record["kind"] == "alloc" and record["reason"] == "asked"], "host")
    most = {kind: records[-1]["peak"][f"{kind}_bytes"] for kind in ("device", "host", "managed")}
    return most | {"host": most["host"] - pinned}


def new_blocks(tokens, ubatch, scratch):
    """(tokens so far, bytes) of each block that the pool of ggml.c asks for in a prompt: it has no other that is large enough."""
    cached = []
    for start in range(0, tokens, ubatch):
        wanted = (start + ubatch) * scratch
        if not cached or cached[-1][1] < wanted:
            cached.append((start + ubatch, up(wanted + wanted // 20, 256)))
    return cached


def signal_of(done):
    return -done.returncode


__all__ = ["KERNELS", "LIBRARY", "MIB", "PROFILES", "SCENARIOS", "Limited", "Scenario", "decided", "held", "in_order", "new_blocks", "peak", "placed",
           "profile", "signal_of", "subprocess", "surfaced", "total", "up"]

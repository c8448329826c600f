"""Runs script.c, the program that does what its arguments say, and reads what it printed."""
import os
import subprocess

from harness import KERNELS, MIB, PATIENCE, PROGRAMS, Case

# Three of 4 MiB fit into 14 MiB; the fourth spills or is out of memory.
FULL = "retain:0 alloc:a:4m:5 fill:a verify:a info free:a info"

# The fourth and fifth of 4 MiB push out the first and half of the second. A simulated kernel is waited for, however long it takes.
MOVED = {"SPILL_MOVABLE_ENABLE": "on", "SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_DEVICE_RESERVE": "0", "SPILL_MOVABLE_WAIT": "30s"}


class ScriptCase(Case):
    def environment(self, *, preload=True, **variables):
        """A bare environment on a simulated device of 14 MiB, room for three of 4 MiB; a variable that is None is taken out."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SPILL_SIM_VRAM": "14MiB",
                       "LD_LIBRARY_PATH": os.environ["SIM_PATH"]}
        if preload:
            environment |= self.preloaded()
        for name, value in variables.items():
            environment[name] = value
        return {name: str(value) for name, value in environment.items() if value is not None}

    def script(self, words, *, preload=True, how=None, **variables):
        """`words`: one string. `how`: further arguments of subprocess.run."""
        command = [str(PROGRAMS / "script"), KERNELS, *words.split()]
        return self.run_in(command, self.environment(preload=preload, **variables), how)

    def run_in(self, command, environment, how=None):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60} | (how or {})
        options["timeout"] *= PATIENCE
        return subprocess.run(command, env=environment, text=True, check=False, **options)

    good = Case.all_right

    @staticmethod
    def results(done):
        """The result of each word, in order, as (word, result)."""
        lines = [line.split() for line in done.stdout.splitlines()]
        return [(line[0], line[1]) for line in lines if len(line) == 2 and line[1].startswith("CUDA_")]

    @staticmethod
    def numbers(done, name):
        """What `info`, `host` or `granules` printed, in order."""
        return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(name + " ")
                and line.split()[1].isdigit()]

    @staticmethod
    def moves(records, what="demote"):
        """The moves of a log, as (index of the allocation among those that are movable, MiB)."""
        seqs = [record["seq"] for record in records if record["kind"] == "alloc" and record["place"] in ("movable", "split")]
        return [(seqs.index(record["seq"]), record["bytes"] // MIB) for record in records
                if record["kind"] == "move" and record["what"] == what]

    @staticmethod
    def policy(records):
        """The effective policy of the start line: value by name."""
        return {option["name"]: option["value"] for option in records[0]["policy"]}

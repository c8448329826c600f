"""Scenario 1 on the simulated GPU."""
import unittest

from long_context import DEVICE, LongContext
from scenario import PROFILES, SPILL, Limited, Scenario, apart


class Calls:
    """Compares a run with one that is not preloaded by what the simulator says of both; an out of memory is told besides."""

    CALLS = True  # whether the driver sees the same, too

    def same(self, command, size, text):
        runs = []
        for policy in None, text:
            trace = self.folder / "trace"
            trace.unlink(missing_ok=True)
            variables = {"ADDRESSES": "1", "SPILL_SIM_TRACE": trace}
            if policy is None:
                done = self.run_program(command, preload=False, **self.small(size, **variables))
            else:
                done, _ = self.with_policy(command, size, policy, **variables)
            calls = trace.read_text(encoding="utf-8").split()
            memory = [call for call in calls if "Alloc" in call or "Free" in call] if self.CALLS else []
            self.assertEqual(len(memory) >= 3, self.CALLS)
            runs.append((done.returncode, done.stdout, apart(done.stderr)[0], memory))
        self.assertEqual(runs[0], runs[1])


class OnCuda(Calls, LongContext, Scenario):
    def test_by_name_and_by_command(self):
        """As a user runs it."""
        for command in self.overflowing(), self.growing():
            self.right(self.logged(command, DEVICE, SPILL_PROFILE="llama-long-context")[0])
            run = [str(SPILL), "run", "-p", str(PROFILES / "llama-long-context.conf"), "--", *command]
            self.right(self.logged(run, DEVICE, LD_PRELOAD="")[0])


class OnHip(Calls, LongContext, Scenario):
    """An AMD card: managed memory does not migrate, and the profile says what to write instead."""

    PROGRAM = "llama_hip"
    GROWN = "host"
    CALLS = False  # an out of memory is raised anew (docs/adr/0004): one call more

    def given(self):
        return (("over = managed\n", "over = host\n"),)


class WithinALimit(LongContext, Limited):
    """As on a real GPU. Small blocks count to the byte, so there is room for one or two more."""

    ABOUT = 44000

    def same(self, command, size, text):
        """Without a limit nothing fails; where the limit refuses, it is as if the driver had."""
        alone = self.run_program(command, preload=False, SPILL_SIM_VRAM="8GiB")
        done, _ = self.with_policy(command, 4 * DEVICE, text)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, alone.stderr))
        self.assertEqual(self.with_policy(command, size, text)[0].stdout, self.alone(command, size).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)

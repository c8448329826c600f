"""The scenarios that need no AMD or Grace hardware on a real GPU, made small by device.limit: tests/scenarios. gpu-test Scenarios

Managed memory is what the programs there ask for, at most a few hundred MiB; the card is never full.
"""
import os
import sys
import unittest

from real import GPU, HERE, RealGpu, devices

os.environ["SCENARIOS"] = str(GPU.parent / "scenarios")
sys.path.insert(0, str(HERE.parent / "scenarios"))
import fit  # noqa: E402
import growing_pool  # noqa: E402
import long_context  # noqa: E402
import managed  # noqa: E402
from scenario import Limited  # noqa: E402


class ScenarioLongContext(long_context.LongContext, Limited, RealGpu):
    ABOUT = 44000

    def same(self, command, size, text):
        alone = self.run_program(command, preload=False)
        done, _ = self.with_policy(command, 1 << 40, text)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, alone.stderr))


class ScenarioGrowingPool(growing_pool.GrowingPool, Limited, RealGpu):
    pass


class ScenarioManaged(managed.Managed, Limited, RealGpu):
    pass


class ScenarioFit(fit.LimitedFit, Limited, RealGpu):
    DEVICES = min(3, devices())

    def small(self, size, **variables):
        return variables


def Scenarios():  # noqa: N802
    """All of them: what unittest finds under the name that gpu-test is given."""
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    return unittest.TestSuite(map(load, (ScenarioLongContext, ScenarioGrowingPool, ScenarioManaged, ScenarioFit)))

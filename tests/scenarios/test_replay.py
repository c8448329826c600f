"""spill replay of the scenarios' programs: recorded where all of it fits and without any policy, predicted under the profile on devices that
are too small, and really run so. On the simulated GPU."""
import json
import subprocess
import unittest

import growing_pool
from fit import TOTALS, Fit, scaled
from scenario import SPILL, Scenario, decided, profile

LARGE = "4GiB"
# Where it was put first; whether it is moved later, and comes back, goes by the clock, too.
FIRST = {"moved out": "device", "movable": "device"}


class Replayed(Scenario):
    def record(self, command, **variables):
        done = self.run_program(command, SPILL_SIM_VRAM=LARGE, SPILL_SIM_CAPS=self.CAPS, SPILL_MOVABLE_ENABLE="off", **variables)
        self.right(done)
        return self.log.rename(self.folder / "recording.jsonl")

    def replay(self, recording, text, *options):
        policy = self.folder / "predicted.conf"
        policy.write_text(text, encoding="utf-8")
        done = subprocess.run([SPILL, "replay", recording, "-p", policy, "--list", "--json", *options], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (run,) = json.loads(done.stdout)["runs"]
        return run

    def compare(self, recording, run, records):
        """Each allocation that the policy had a say in is where the replay says, by the same rule."""
        told = {one["seq"]: one["to"] for one in run["elsewhere"]["list"]}
        before = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
        predicted = [(record["bytes"], FIRST.get(told.get(record["seq"]), told.get(record["seq"], "device"))) for record in decided(before)]
        self.assertEqual(predicted, [(record["bytes"], FIRST.get(record["place"], record["place"])) for record in decided(records)])
        end = records[-1]
        self.assertEqual((run["spills"], run["spilled"]), (end["spills"], end["spilled"]))


class GrowingPool(growing_pool.GrowingPool, Replayed):
    test_the_numbers = test_alone_it_ends = test_dead_blocks_leave = None  # test_growing_pool.py

    def test_as_predicted(self):
        recording = self.record(self.program())
        run = self.replay(recording, profile("growing-pool", growing_pool.SCALE), "--vram", str(growing_pool.DEVICE), "--without", "vmm")
        done, records = self.in_profile()
        self.right(done)
        self.compare(recording, run, records)
        self.assertEqual([one["name"] for one in run["elsewhere"]["by_rule"]], ["growing-pool"])


class ThreeDevices(Fit, Replayed):
    CAPS = ""
    test_the_projection_of_what_it_uses = test_a_wrong_projection_does_not_end_the_run = None  # test_fit.py

    def small(self, size, **variables):
        return {"SPILL_SIM_VRAM": ",".join(str(scaled(total)) for total in TOTALS), "SPILL_SIM_DEVICES": "3", **variables}

    def test_as_predicted(self):
        recording = self.record(self.program(), SPILL_SIM_DEVICES="3")
        # The devices are as large as in the recording: the policy's limits keep the margin.
        run = self.replay(recording, self.policy())
        done, records = self.run_it()
        self.right(done)
        self.compare(recording, run, records)
        for device, row in zip(run["devices"], self.table(records)):
            self.assertEqual(device["fit"]["device_bytes"], row["device"])
            self.assertEqual(device["fit"]["wanted"], row["device"] + row["host"], "in whole chunks, where it is made of them")


del Fit  # or its tests would run as if they were here


if __name__ == "__main__":
    unittest.main(verbosity=2)

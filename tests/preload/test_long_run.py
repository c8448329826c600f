"""Many allocations, some of which spill: libspill's own memory, its log and its ledger stay as they are."""
import json
import os
import unittest

from harness import MIB, PROGRAMS, Case

ALLOCATIONS = int(os.environ.get("ALLOCATIONS", "100000"))  # 100 million in scripts/check soak
LOOKS, FIRST = 10, 3  # quiet moments; those until caches and kept memory are there
RESIDENT_KIB = 24 << 10  # the simulated device's memory is resident where it was copied to
ALLOCATED_KIB = 128
VRAM = "40MiB"


class LongRun(Case):
    follow = level = None
    vram = VRAM

    def test_nothing_grows(self):
        done = self.run_program([PROGRAMS / "long_run", str(ALLOCATIONS), str(LOOKS), "1"], timeout=300 + ALLOCATIONS // 50000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        looks = [[int(word) for word in line.split()[1:]] for line in done.stdout.splitlines()]
        self.assertEqual((len(looks), looks[-1][0]), (LOOKS, ALLOCATIONS // LOOKS * LOOKS), done.stdout)
        _, resident, allocated, descriptors = zip(*looks)
        print(done.stdout)
        self.assertLessEqual(max(resident[FIRST:]) - resident[FIRST - 1], RESIDENT_KIB, done.stdout)
        self.assertLessEqual(max(allocated[FIRST:]) - allocated[FIRST - 1], ALLOCATED_KIB, done.stdout)
        self.assertEqual(set(descriptors[FIRST - 1:]), {descriptors[FIRST - 1]}, done.stdout)
        self.reported()
        with open(self.log, encoding="utf-8") as log:
            *_, last = log
        last = json.loads(last)
        self.assertGreater(last["spills"] + last["demotions"], 0, "memory was short now and then")
        self.assertGreater(last["allocs"], ALLOCATIONS // 4, "of memory in stream order a segment counts as one")
        self.assertEqual(last["allocs"], last["frees"])
        self.assertEqual(set(last["live"].values()), {0})
        self.assertLessEqual(self.log.stat().st_size, 80 * MIB)  # log.max is 64 MiB, and sums and notes come beside it


if __name__ == "__main__":
    unittest.main()

"""The shipped profiles by name: what SPILL_PROFILE starts from is the text that the scenarios run with."""
import unittest

from scenario import KERNELS, MIB, PROFILES, SCENARIOS, SPILL, Scenario

NAMES = sorted(path.stem for path in PROFILES.glob("*.conf"))


class Profiles(Scenario):
    PROGRAM = [str(SCENARIOS / "llama_cuda"), KERNELS, *map(str, (8 * MIB, MIB, 512, 512, 64, 1))]

    def start(self, **variables):
        done, records = self.logged(self.PROGRAM, 64 * MIB, **variables)
        self.right(done)
        self.assertEqual([r["text"] for r in records if r["kind"] == "note" and r["code"] == "policy"], [])
        return records[0]

    def test_all(self):
        """One for each of the five situations, and one that only sets PyTorch's variables (tests/cli/run.bats)."""
        self.assertEqual(NAMES, ["fit-margin", "gh200-managed", "growing-pool", "llama-long-context", "moe-experts", "pytorch"])

    def test_the_name_means_the_text(self):
        for name in NAMES:
            with self.subTest(name):
                by_name = self.start(SPILL_PROFILE=name)["policy"]
                by_text = self.start(SPILL_POLICY=PROFILES / f"{name}.conf")["policy"]
                self.assertEqual([(o["name"], o["value"]) for o in by_name if o["name"] != "spill.profile"],
                                 [(o["name"], o["value"]) for o in by_text if o["name"] != "spill.profile"])
                self.assertIn(name, {o["value"] for o in by_name if o["name"] == "spill.profile"})
                self.assertGreater(len([o for o in by_name if f"profile {name}" in o["source"]]), 0)

    def test_each_is_right(self):
        for name in NAMES:
            done = self.run_program([SPILL, "check", str(PROFILES / f"{name}.conf")], preload=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)

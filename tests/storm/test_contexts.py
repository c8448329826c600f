"""Contexts come and go on eight threads, with live memory in them: no byte of a living context's memory is lost.

A driver gives an ended context's handle to the next one at once. STORM_SECONDS: how long, with a seed a round, and at least one round
each way; STORM_SEED: the first seed.
"""
import os
import subprocess
import time
import unittest

from harness import LIBRARY, Case
from sanitizers import SANITIZERS

SECONDS = int(os.environ.get("STORM_SECONDS", "0"))
SEED = int(os.environ.get("STORM_SEED", "1"))
HOW = os.environ["STORM_HOW"]
ROUNDS = {"preload": 6, "asan": 3, "tsan": 3}[HOW]
# Memory that moves, memory that is split and shares chunks, and almost no device memory at all.
WAYS = [("64", {}), ("64", {"SPILL_MOVABLE_ENABLE": "on"}), ("64", {"SPILL_MOVABLE_ENABLE": "off"}),
        ("12", {}), ("64", {"SPILL_OOM_CHAIN": "managed", "SPILL_MOVABLE_ENABLE": "off"}),
        ("64", {"SPILL_OOM_CHAIN": "host", "SPILL_MOVABLE_ENABLE": "off"})]
AT_LEAST = len(WAYS) if HOW == "preload" else 3


class Contexts(Case):
    def storm(self, seed, card, variables):
        self.log.unlink(missing_ok=True)
        command = [os.environ["STORM"], str(seed), str(ROUNDS), card]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LD_LIBRARY_PATH": os.environ["SIM_PATH"],
                       "SPILL_LOG": str(self.log), "SPILL_LOG_METRICS": str(self.log.with_suffix(".prom")), "SPILL_HOST_SHARE": "no", "SPILL_SIM_VRAM": f"{card}MiB",
                       **SANITIZERS, **variables}
        if HOW == "preload":
            environment["LD_PRELOAD"] = LIBRARY
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                              check=False)
        again = f"{variables} SPILL_SIM_VRAM={card}MiB {' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-3000:]}"
        self.assertEqual(done.returncode, 0, again)
        self.assertIn("all bytes right", done.stdout)
        return self.checked_records()

    def test_no_byte_of_a_living_context_is_lost(self):
        end, seed, spilled = time.monotonic() + SECONDS, SEED, 0
        while seed < SEED + AT_LEAST or time.monotonic() < end:
            card, variables = WAYS[(seed - SEED) % len(WAYS)]
            with self.subTest(card=card, **variables):
                last = self.storm(seed, card, variables)[-1]
                self.assertEqual(set(last["live"].values()), {0}, "nothing is left in the ledger")
                spilled += last["spills"]
            seed += 1
        self.assertGreater(spilled, 0)


del Case
if __name__ == "__main__":
    unittest.main()

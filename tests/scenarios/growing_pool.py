"""Scenario 2: a pool that grows with every micro-batch. One file for the simulator and a real GPU."""
import signal

from scenario import KERNELS, MIB, SCENARIOS, decided, in_order, new_blocks, peak, placed, profile, surfaced, up

# 12 GiB, a prompt of 20,000 tokens in micro-batches of 512, 20 KiB of scratch memory a token, by 16.
SCALE = 16
TOKENS, UBATCH = 20000, 512
SCRATCH = (20 << 10) // SCALE
DECODE = 200  # tokens, with 10 MiB (by 16) each
WEIGHTS, KV = 606 * MIB, 106 * MIB
SIZES = [size for _, size in new_blocks(TOKENS, UBATCH, SCRATCH)]
LIVE = WEIGHTS + KV + up(SIZES[-1])  # at most
DEVICE = LIVE + up(SIZES[-1])
# The rule is about blocks of 64 MiB and more, from the sixth of a run on.
PLAIN = [size for n, size in enumerate(SIZES, start=1) if n < 6 or size < 64 * MIB // SCALE]
GROWN = SIZES[len(PLAIN):]


class GrowingPool:
    """To be mixed with a Scenario."""

    def program(self, *words):
        return [str(SCENARIOS / "llama_cuda"), KERNELS, *map(str, (WEIGHTS, KV, TOKENS, UBATCH, SCRATCH, DECODE)), *words]

    def test_the_numbers(self):
        """A device of 12 GiB, and several GiB of blocks that nothing fits into again."""
        self.assertEqual(DEVICE * SCALE, 12 << 30)
        self.assertGreater(sum(SIZES[:-1]) * SCALE, 4 << 30)
        self.assertLess(len(SIZES), 256)
        self.assertEqual(SIZES, PLAIN + GROWN)

    def test_alone_it_ends(self):
        done = self.alone(self.program(), DEVICE)
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stdout[-500:] + done.stderr)
        tokens = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("prompt ")]
        self.assertLess(tokens[-1], TOKENS // 2)

    def in_profile(self, *words, **variables):
        return self.with_policy(self.program(*words), DEVICE, profile("growing-pool", SCALE), **variables)

    def check_profile(self, done, records):
        """Live data and one block are enough."""
        self.right(done)
        self.assertEqual(surfaced(records), [])
        self.assertEqual([(r["place"], r["bytes"]) for r in placed(records, "growing-pool")], [("managed", size) for size in GROWN])
        self.assertEqual({r["reason"] for r in placed(records, "growing-pool")}, {"rule"})
        rest = [(r["place"], r["bytes"]) for r in decided(records) if r.get("rule") != "growing-pool"]
        self.assertEqual(rest, [("device", size) for size in (WEIGHTS, KV, *PLAIN)])
        self.assertEqual(peak(records), {"device": WEIGHTS + KV + sum(PLAIN), "host": 0, "managed": sum(GROWN)})
        # What cannot leave the device, with the block in use: within live data and one block.
        self.assertLessEqual(self.taken([WEIGHTS, KV, *PLAIN]) + up(GROWN[-1]), DEVICE)

    def check_decode(self, done, records):
        """Nothing is asked for, nothing is placed, nothing moves."""
        lines = done.stdout.splitlines()
        behind = lines[lines.index("-- decode"):]
        self.assertIn(f"decode {DECODE}", behind)
        self.assertEqual([line for line in behind if line.startswith("alloc")], [])
        events = [record["kind"] for record in in_order(records) if "order" in record and record.get("reason") != "asked"]
        self.assertEqual(events[:2 + len(SIZES)], ["alloc"] * (2 + len(SIZES)))
        self.assertEqual(set(events[2 + len(SIZES):]), {"free"})

    def test_dead_blocks_leave(self):
        done, records = self.in_profile()
        self.check_profile(done, records)
        self.check_decode(done, records)

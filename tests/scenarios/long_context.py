"""Scenario 1: the KV cache does not fit, or the scratch pool cannot grow. One file for the simulator and a real GPU."""
import signal

from scenario import KERNELS, MIB, SCENARIOS, decided, new_blocks, peak, placed, profile, surfaced

# 16 GiB, 12 GiB of weights, and a context of 262,144 tokens, by 64. The KV cache is of 4.5 GiB, or of 1.875 and fits.
SCALE = 64
DEVICE = 256 * MIB
WEIGHTS = 192 * MIB
LARGE, FITTING = 72 * MIB, 30 * MIB
UBATCH = 512
SCRATCH = 40  # bytes of scratch memory a token
DECODE = 20
NEITHER = ("pool-growth", "buffer")


class LongContext:
    """To be mixed with a Scenario."""

    PROGRAM = "llama_cuda"
    ABOUT = 41000  # tokens, at which the pool finds no room
    GROWN = "managed"  # where choice 1 puts what the pool grows by

    def program(self, kv, tokens, *words):
        return [str(SCENARIOS / self.PROGRAM), KERNELS, *map(str, (WEIGHTS, kv, tokens, UBATCH, SCRATCH, DECODE)), *words]

    def overflowing(self):
        """The KV cache does not fit; the prompt is short."""
        return self.program(LARGE, 4096)

    def growing(self):
        """It fits; the prompt goes on for a fifth behind the token where the pool cannot grow."""
        return self.program(FITTING, 49152)

    def policy(self, *without):
        return profile("llama-long-context", without=without, given=self.given())

    def given(self):
        return ()

    def fails_at(self):
        """The prompt token at which the pool finds no room beside weights and KV cache, and how many blocks it has by then."""
        blocks = new_blocks(1 << 18, UBATCH, SCRATCH)
        sizes = [size for _, size in blocks]
        count = next(n for n in range(len(sizes)) if self.taken([WEIGHTS, FITTING, *sizes[:n + 1]]) > DEVICE)
        return blocks[count][0], count

    def reached(self, done):
        """The last token of the prompt that was worked on."""
        tokens = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("prompt ")]
        return tokens[-1] if tokens else 0

    def gave_up(self, done):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "failed to allocate the KV cache")

    def aborted(self, done):
        token, _ = self.fails_at()
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stdout[-500:] + done.stderr)
        self.assertEqual(self.reached(done), token - UBATCH)
        self.assertAlmostEqual(token, self.ABOUT, delta=UBATCH)

    def test_alone_it_ends(self):
        self.gave_up(self.alone(self.overflowing(), DEVICE))
        self.aborted(self.alone(self.growing(), DEVICE))

    def kv_overflows(self, *without):
        done, records = self.with_policy(self.overflowing(), DEVICE, self.policy(*without))
        self.right(done)
        self.assertEqual(surfaced(records), [])
        spilled = placed(records, "buffer")
        self.assertEqual([(r["place"], r["bytes"]) for r in spilled if r["place"] != "device"], [("host", LARGE)])
        blocks = sum(size for _, size in new_blocks(4096, UBATCH, SCRATCH))
        self.assertEqual(peak(records), {"device": WEIGHTS + blocks, "host": LARGE, "managed": 0})
        self.assertEqual(records[-1]["spilled"]["host_bytes"], LARGE)
        self.assertEqual(records[-1]["spills"], 1)

    def test_the_kv_cache_alone_is_on_the_host(self):
        self.kv_overflows()

    def pool_grows(self, *without):
        done, records = self.with_policy(self.growing(), DEVICE, self.policy(*without))
        self.right(done)
        self.assertEqual(self.reached(done), 49152)
        self.assertEqual(surfaced(records), [])
        _, before = self.fails_at()
        sizes = [size for _, size in new_blocks(49152, UBATCH, SCRATCH)]
        grown = [r for r in decided(records) if r["place"] != "device"]
        self.assertEqual([(r["rule"], r["place"], r["bytes"]) for r in grown],
                         [("pool-growth", self.GROWN, size) for size in sizes[before:]])
        self.assertEqual(peak(records)["device"], WEIGHTS + FITTING + sum(sizes[:before]))
        self.assertEqual(records[-1]["spilled"][f"{self.GROWN}_bytes"], sum(sizes[before:]))
        self.assertEqual(records[-1]["spills"], len(sizes) - before)

    def test_the_pool_grows_elsewhere(self):
        self.pool_grows()

    def test_the_choices_are_independent(self):
        self.kv_overflows("pool-growth")
        self.pool_grows("buffer")
        self.aborted(self.with_policy(self.growing(), DEVICE, self.policy("pool-growth"))[0])
        self.gave_up(self.with_policy(self.overflowing(), DEVICE, self.policy("buffer"))[0])

    def test_with_neither_choice_nothing_differs(self):
        """Every call, its result, its address and the last error: where a buffer fails, where the pool does, where all fits."""
        for command, size in ((self.overflowing(), DEVICE), (self.growing(), DEVICE), (self.program(FITTING, 4096), DEVICE)):
            self.same(command, size, self.policy(*NEITHER))

"""Scenario 3: everything managed on a coherent machine. One file for the simulator and a real GPU."""
from scenario import KERNELS, LIBRARY, MIB, SCENARIOS, decided, peak, profile, surfaced

# By 16: weights are below 2 GiB and are brought to the device, the KV cache is above and comes as it is used.
SCALE = 16
DEVICE = 256 * MIB
COUNT, WEIGHTS, KV = 3, 48 * MIB, 160 * MIB
SIZES = [WEIGHTS] * COUNT + [KV]


class Managed:
    """To be mixed with a Scenario."""

    def program(self, *library):
        return [str(SCENARIOS / "managed"), KERNELS, str(COUNT), str(WEIGHTS), str(KV), *library]

    def policy(self, *given):
        return profile("gh200-managed", SCALE, given=given)

    @staticmethod
    def used(done, when):
        """What the program saw in use on the device."""
        line, = [line for line in done.stdout.splitlines() if line.startswith(f"used {when} ")]
        return int(line.split()[-1])

    @staticmethod
    def advised(done):
        return [line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if line.startswith("advised ")]

    def good(self, done, records, api, prefetched=WEIGHTS):
        self.right(done)
        self.assertEqual(surfaced(records), [])
        asked = decided(records)
        self.assertEqual([(r["place"], r["bytes"], r["rule"], r["reason"], r["api"]) for r in asked],
                         [("managed", size, "all-managed", "rule", api) for size in SIZES])
        self.assertEqual([r.get("device_bytes", 0) for r in asked], [prefetched] * COUNT + [0])
        self.assertEqual(peak(records), {"device": prefetched * COUNT, "host": 0, "managed": sum(SIZES)})
        self.assertEqual(len([r for r in records if r["kind"] == "free"]), len(SIZES))
        # The host's loads are right, and a free waits for the kernel that still writes.
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("read")],
                         [f"read {n} 0 wrong" for n in range(COUNT + 1)])
        self.assertIn("free in use", done.stdout)
        # What the driver was told: preferred is device 0, the host (-1) reads in place, nothing is said to be read mostly.
        last = 0 if prefetched else -2
        words = "preferred 0 accessed_by -1 -2 read_mostly 0 prefetched"
        self.assertEqual(self.advised(done), [f"{words} {last}"] * COUNT + [f"{words} -2"])

    def test_alone_it_ends(self):
        done = self.alone(self.program(), DEVICE)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], f"alloc {KV} out of memory")

    def test_preloaded(self):
        self.good(*self.with_policy(self.program(), DEVICE, self.policy(), SPILL_DEVICE_RESERVE="0"), "cuMemAlloc_v2")

    def test_as_pluggable_allocator(self):
        for preload in True, False:
            with self.subTest(preload=preload):
                self.good(*self.with_policy(self.program(LIBRARY), DEVICE, self.policy(), SPILL_DEVICE_RESERVE="0",
                                            **{} if preload else {"LD_PRELOAD": ""}), "spill_malloc")

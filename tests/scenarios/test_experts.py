"""Scenario 4 on the simulated GPU: a mixture of experts that is larger than the card. AMD cards are not to be had for the tests."""
import unittest

from scenario import KERNELS, MIB, SCENARIOS, Scenario, decided, held, in_order, peak, placed, profile, surfaced

# A card of 48 GiB and 47.6 GiB of weights, of which 45 are experts, by 32.
SCALE = 32
DEVICE = (48 << 30) // SCALE
LAYERS = 48
EXPERTS = 30 * MIB
DENSE = int(47.6 * (1 << 30) / SCALE - LAYERS * EXPERTS) // LAYERS // 8 * 8
KV = 80 * MIB
CAP = int(37.5 * (1 << 30)) // SCALE
FLOOR = int(4.5 * (1 << 30)) // SCALE


class Card(Scenario):
    PROGRAM = "experts_hip"

    def program(self, layers=LAYERS, again=0):
        return [str(SCENARIOS / self.PROGRAM), KERNELS, *map(str, (layers, DENSE, EXPERTS, KV, 4, again))]

    def run_it(self, *given, layers=LAYERS, again=0):
        return self.with_policy(self.program(layers, again), DEVICE, profile("moe-experts", SCALE, given=given))

    def check_alone(self):
        done = self.alone(self.program(), DEVICE)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "failed to load")

    def check(self, done, records, fit, layers=LAYERS):
        """`fit` layers of experts are on the card, the rest on the host; all else is as ever."""
        self.right(done)
        self.assertEqual(surfaced(records), [])
        experts = placed(records, "experts")
        self.assertEqual([(r["bytes"], r["place"]) for r in experts], [(EXPERTS, "device")] * fit + [(EXPERTS, "host")] * (layers - fit))
        rest = [r for r in decided(records) if r not in experts]
        self.assertEqual([(r["bytes"], r["place"], r["rule"]) for r in rest],
                         [(DENSE, "device", "default")] * layers + [(KV, "device", "default")])
        on_device = fit * EXPERTS + layers * DENSE + KV
        self.assertEqual(peak(records), {"device": on_device, "host": (layers - fit) * EXPERTS, "managed": 0})
        self.assertEqual(records[-1]["spilled"]["host_bytes"], (layers - fit) * EXPERTS)

    def check_profile(self):
        done, records = self.run_it()
        self.check(done, records, CAP // EXPERTS)
        self.assertGreaterEqual(self.free(done), FLOOR)

    def free(self, done):
        line, = [line for line in done.stdout.splitlines() if line.startswith("free ")]
        return int(line.split()[1])

    def held_at_most(self, records):
        """Device bytes of the rule, at the moment when they are most."""
        device = {record["seq"]: held(record)["device"] for record in placed(records, "experts")}
        live, most = 0, 0
        for record in in_order(records):
            if record["kind"] in ("alloc", "free") and record["seq"] in device:
                live += device[record["seq"]] * (1 if record["kind"] == "alloc" else -1)
                most = max(most, live)
        self.assertEqual(live, 0)
        return most


class Amd(Card):
    """Managed memory does not migrate, and nothing is movable."""

    def test_alone_it_does_not_load(self):
        self.check_alone()

    def test_the_rest_is_read_in_place(self):
        self.assertEqual(CAP // EXPERTS, 40)
        self.check_profile()

    def test_the_cap_is_kept(self):
        """At any moment, for caps that fit no whole number of experts, too."""
        for cap, fit in ("3.5GiB", 3), ("0.9375GiB", 1), ("959MiB", 0), ("0", 0):
            with self.subTest(cap):
                done, records = self.run_it(("cap = 37.5GiB", f"cap = {cap}"), layers=6)
                self.check(done, records, fit, layers=6)

    def test_what_is_freed_is_there_again(self):
        """The cap is about what is held: experts that are loaded anew find the room of the old ones."""
        done, records = self.run_it(("cap = 37.5GiB", "cap = 3GiB"), layers=6, again=2)
        self.right(done)
        self.assertEqual([r["place"] for r in placed(records, "experts")], ["device"] * 3 + ["host"] * 3 + ["device"] * 2)
        self.assertEqual(self.held_at_most(records), 3 * EXPERTS)

    def test_nothing_is_changed_where_it_fits(self):
        alone = self.alone(self.program(layers=20), DEVICE)
        done, records = self.run_it(layers=20)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (alone.returncode, alone.stdout, alone.stderr))
        self.check(done, records, 20, layers=20)

    def test_fractions(self):
        """4.5 GiB, as it is written."""
        _, records = self.run_it(layers=1)
        policy = {option["name"]: option["value"] for option in records[0]["policy"]}
        self.assertEqual(policy["device.reserve"], "144MiB")
        self.assertEqual(FLOOR, 144 * MIB)


class Nvidia(Card):
    """A card without virtual memory management."""

    PROGRAM = "experts_cuda"

    def test_it_is_the_same(self):
        self.check_alone()
        self.check_profile()


class Split(Card):
    """Where a card has virtual memory management, one allocation may be on both sides of the cap."""

    PROGRAM = "experts_cuda"
    CAPS = ""
    movable = "off"

    def test_split_at_the_cap(self):
        done, records = self.run_it(("over = host", "over = split"), ("cap = 37.5GiB", "cap = 1.5GiB"), layers=3)
        self.right(done)
        experts = placed(records, "experts")
        self.assertEqual([r["place"] for r in experts], ["device", "split", "split"])
        self.assertEqual([held(r)["device"] for r in experts], [EXPERTS, 48 * MIB - EXPERTS, 0])
        self.assertEqual(self.held_at_most(records), 48 * MIB)


class Kinds(Card):
    """A card, and a device whose memory is the host's: each says what it is, and the user may know better."""

    def test_where_the_rest_is(self):
        text = profile("moe-experts", SCALE, given=(("over = host\n", ""), ("cap = 37.5GiB", "cap = 3GiB")))
        for program, caps, memory, rest in (("experts_hip", "", "auto", "host"), ("experts_hip", "integrated", "auto", "managed"),
                                            ("experts_cuda", "", "auto", "split"), ("experts_cuda", "integrated", "auto", "managed"),
                                            ("experts_cuda", "", "integrated", "managed"),
                                            ("experts_cuda", "integrated", "discrete", "split")):
            with self.subTest(program, caps=caps, memory=memory):
                self.PROGRAM, self.CAPS = program, caps
                done, records = self.with_policy(self.program(layers=5), DEVICE, text, SPILL_DEVICE_MEMORY=memory,
                                                 SPILL_MOVABLE_ENABLE="off")
                self.right(done)
                self.assertEqual([r["place"] for r in placed(records, "experts")], ["device"] * 3 + [rest] * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)

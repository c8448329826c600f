"""Scenario 5: fitting a large program to several devices with a margin. One file for the simulator and real GPUs."""
import re

from scenario import KERNELS, MIB, SCENARIOS, held, in_order, placed, profile, surfaced, up

# MiB by 128.
SCALE = 128
MARGIN = 1024
TOTALS = (16304, 16368, 32752)
PROJECTED = (39959, 42480, 76200)
KV = (5440, 11152, 16200)
COUNTS = (30, 28, 50)
EXPERT = 1000
REST = 200  # of the dense weights, behind the experts


def scaled(mib):
    """Bytes, of whole words."""
    return mib * MIB // SCALE // 8 * 8


class Fit:
    """To be mixed with a Scenario."""

    DEVICES = 3

    def dense(self, device):
        """The dense weights that come before the experts."""
        return PROJECTED[device] - KV[device] - COUNTS[device] * EXPERT - REST

    def program(self, counts=COUNTS, tokens=3):
        words = [":".join(map(str, (scaled(self.dense(n)), scaled(REST), scaled(EXPERT), counts[n], scaled(KV[n]))))
                 for n in range(self.DEVICES)]
        return [str(SCENARIOS / "fit"), KERNELS, str(tokens), *words]

    def policy(self):
        """With the lines for these devices, which the profile has as comments."""
        return profile("fit-margin", SCALE, given=(("#\t", ""),))

    def limit(self, device):
        return scaled(TOTALS[device] - MARGIN)

    def run_it(self, counts=COUNTS):
        done, records = self.with_policy(self.program(counts), None, self.policy(), SPILL_MOVABLE_WAIT="30s")
        self.right(done)
        self.assertEqual(surfaced(records), [])
        return done, records

    def table(self, records):
        """For each device: total, wanted, where it is and what is left against the margin; when all is loaded and by what it is."""
        rows = [{"total": scaled(total), "wanted": 0, "device": 0, "host": 0, "most": 0} for total in TOTALS[:self.DEVICES]]
        kinds = {scaled(EXPERT): "experts"} | {scaled(size): "kv" for size in KV} | {scaled(self.dense(n)): "dense" for n in range(3)}
        kinds[scaled(REST)] = "dense"
        live = {}
        for record in in_order(records):
            if record["kind"] == "free" and record.get("reason") == "free" and record["seq"] in live:
                break  # the end begins
            if record["kind"] == "alloc" and record["reason"] != "asked":
                live[record["seq"]] = (record["dev"], kinds[record["bytes"]], held(record))
                rows[record["dev"]]["wanted"] += record["bytes"]
            elif record["kind"] == "move":
                live[record["seq"]] = (*live[record["seq"]][:2], held(record))
            for n, row in enumerate(rows):
                row["most"] = max(row["most"], sum(where["device"] for dev, _, where in live.values() if dev == n))
        for n, row in enumerate(rows):
            mine = [(kind, where) for dev, kind, where in live.values() if dev == n]
            row["device"] = sum(where["device"] for _, where in mine)
            row["host"] = sum(where["host"] for _, where in mine)
            row["free"] = row["total"] - row["device"]
            row["surplus"] = row["free"] - scaled(MARGIN)
            row["on host"] = {kind for kind, where in mine if where["host"]}
            row["experts"] = sum(where["device"] for kind, where in mine if kind == "experts")
        return rows

    def check(self, records, counts=COUNTS):
        for n, row in enumerate(self.table(records)):
            with self.subTest(device=n, row=row):
                self.assertEqual(row["wanted"], scaled(self.dense(n)) + scaled(REST) + counts[n] * scaled(EXPERT) + scaled(KV[n]))
                self.assertLessEqual(row["most"], self.limit(n), "the margin, at any moment")
                self.assertGreaterEqual(row["surplus"], 0)
                self.assertLessEqual(row["on host"], {"experts"})
                # Whole experts, as many as there is room for beside the rest, less what one move frees too much.
                room = self.limit(n) - self.taken([scaled(self.dense(n)), scaled(REST), scaled(KV[n])])
                most = min(room // up(scaled(EXPERT)), counts[n])
                self.assertLessEqual(row["experts"], most * up(scaled(EXPERT)))
                self.assertGreaterEqual(row["experts"], (most - 1) * scaled(EXPERT))

    def failed(self, done, device):
        """The program ended there."""
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        what, number = done.stdout.splitlines()[-2].split()[1:3]
        self.assertEqual((done.stdout.splitlines()[-1], number), ("failed to load", str(device)))
        return what

    def test_the_projection_of_what_it_uses(self):
        done, records = self.run_it()
        self.check(records)
        for n in range(self.DEVICES):
            # Experts never make way for experts: those that come when the device is full are read on the host from the start.
            first = (self.limit(n) - self.taken([scaled(self.dense(n))])) // up(scaled(EXPERT))
            places = [r["place"] for r in placed(records, "experts") if r["dev"] == n]
            self.assertEqual(places, ["movable"] * first + ["host"] * (COUNTS[n] - first))
        self.assertEqual(len(re.findall("(?m)^alloc", done.stdout)), sum(COUNTS[:self.DEVICES]) + 3 * self.DEVICES)

    # What a wrong projection has left beside the KV cache of the first device and the third, and not of the second.
    WRONG = (5, 5, 5)

    def test_a_wrong_projection_does_not_end_the_run(self):
        _, records = self.run_it(self.WRONG)
        self.check(records, self.WRONG)


class LimitedFit(Fit):
    """Devices that are larger than it says. To be mixed with Limited."""

    movable = None  # the profile says

    def limits(self):
        return {f"SPILL_DEVICE_{n}_LIMIT": str(self.limit(n)) for n in range(self.DEVICES)}

    def test_alone_it_ends(self):
        self.failed(self.alone(self.program(), None, **self.limits()), 0)

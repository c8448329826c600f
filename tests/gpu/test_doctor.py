"""What spill doctor says of a real GPU, against what tests/gpu/bandwidth.c measures in the same run."""
import json
import os
import re
import subprocess

from real import GPU, RealGpu, devices, tell

from harness import KERNELS, SPILL


class Doctor(RealGpu):
    def doctor(self, *arguments):
        done = subprocess.run([SPILL, "doctor", "--json", *arguments], capture_output=True, text=True, check=False,
                              env={**os.environ, "SPILL_LOG": "off"})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def test_it_finds_the_driver_and_moves_a_chunk(self):
        report = self.doctor("--quick")
        what = [one["what"] for one in report["findings"]]
        self.assertEqual([one for one in report["findings"] if one["area"] == "device" and one["level"] != "fact"], [])
        self.assertTrue(any(re.match("NVIDIA driver for CUDA .*NVRM version: ", text) for text in what), what)
        self.assertTrue(any("a chunk was moved there and back" in text for text in what), what)
        self.assertEqual(report["links"], [])

    def test_the_link_is_as_fast_as_a_program_finds_it(self):
        report = self.doctor()
        self.assertEqual(len(report["links"]), devices())
        link = report["links"][0]
        self.assertFalse(link["simulated"])
        done = self.run_program([str(GPU / "gpu_bandwidth"), KERNELS, "4096"], SPILL_DEVICE_LIMIT="1GiB")
        in_place, copy = map(float, re.findall(r"([0-9.]+) GB/s", done.stdout))
        tell(f"doctor: {link['to_device']:.1f} GB/s there, {link['from_device']:.1f} back, host memory "
             f"{link['host_memory'] or 0:.1f}; program: pinned copy {copy:.1f}, read in place {in_place:.1f}")
        # Machines are shared: a fault of the measurement is a factor, not some percent.
        self.assertLess(max(link["to_device"], copy) / min(link["to_device"], copy), 1.25)
        self.assertLess(max(link["to_device"], link["from_device"]) / min(link["to_device"], link["from_device"]), 1.5)
        two_gib = next(one for one in link["decode"] if one["bytes"] == 2 << 30)
        tell(f"predicted: 2 GiB more on the host, {two_gib['ms']:.1f} ms a token longer; read in place that is "
             f"{(2 << 30) / in_place / 1e6:.1f} ms")
        self.assertAlmostEqual(two_gib["ms"] * in_place * 1e6 / (2 << 30), 1, delta=0.25)

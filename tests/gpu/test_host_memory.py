"""Host memory on a real GPU: who counts it, and that a control group's limit holds for chunks, which no group counts. Run by scripts/gpu-test.

Managed memory stays far below what the card has free (pinned_charge.c).
"""
import json
import subprocess

from real import GPU, RealGpu, tell

from control_group import ControlGroup
from harness import KERNELS, MIB, PROGRAMS, decided, held

LIMIT, RESERVE, SIZE, COUNT = 3072, 256, 128, 40  # MiB


class HostMemory(RealGpu):
    def test_who_counts_it(self):
        done = subprocess.run([str(GPU / "gpu_pinned_charge"), "256"], capture_output=True, text=True, timeout=300, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = {line["kind"]: line for line in lines if "kind" in line}
        if not next(line for line in lines if "group" in line)["own"]:
            self.skipTest("no control group can be made here")
        for kind, line in kinds.items():
            with self.subTest(kind):
                self.assertEqual(line["result"], 0)
                seen = line["device" if "device" in line else "host"]
                uncounted = kind in ("cuMemCreate HOST_NUMA", "pool PINNED HOST_NUMA")
                self.assertLess(abs(seen["cgroup"] - (0 if uncounted else 256)), 64)
                tell(f"{kind}: 256 MiB; the group has {seen['cgroup']} more, MemAvailable {seen['MemAvailable']}")
        for line in (line for line in lines if "memlock" in line):
            refused = {name: result for name, result in line.items() if name in kinds and result}
            self.assertEqual(refused, {}, "RLIMIT_MEMLOCK holds for none of them")

    def test_a_groups_limit_holds_for_chunks(self):
        group = ControlGroup(self, LIMIT * MIB)
        command = ["sh", "-c", f"echo $$ >'{group.folder}/cgroup.procs' && exec \"$@\"", "sh", str(PROGRAMS / "script"), KERNELS,
                   "retain:0", f"alloc:a:{SIZE}m:{COUNT}", "fill:a", "verify:a"]
        done = self.run_program(command, SPILL_DEVICE_LIMIT="256MiB", SPILL_OOM_CHAIN="split", SPILL_HOST_LIMIT="100%",
                                SPILL_HOST_RESERVE=f"{RESERVE}MiB")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        records = self.checked_records()
        oom = next(r for r in records if r["kind"] == "oom")
        self.assertEqual(oom["refused_by"], "host.reserve")
        chunks = sum(held(r)["host"] for r in decided(records)) // MIB
        self.assertGreater(chunks, LIMIT // 2, "and not before it must")
        self.assertLess(chunks, LIMIT - RESERVE)
        tell(f"a group of {LIMIT} MiB, of which {RESERVE} are kept: {chunks} MiB in chunks, then out of memory")

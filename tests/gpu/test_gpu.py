"""The main job on a real GPU. Run by scripts/gpu-test, which finds the build and the CUDA runtime.

Managed memory never exceeds what the card has free: the managed case is small and stays inside a limit. Real pressure is
made by a second process with plain allocations, and under it only split and host are allowed.
"""
import os
import subprocess
import sys

from real import GPU, HERE, Peak, RealGpu, tell

import harness
from harness import MIB, apart, held, program

RECORDED = HERE.parent / "preload/h200"
CUDA = ["prog_runtime", "prog_runtime_static_real", "prog_driver_link", "prog_driver_dlsym", "prog_driver_proc1",
        "prog_driver_proc2"]
SIX_GIB = ("--count", "8", "--mib", "768")  # 1.5 times a limit of 4 GiB


class MainJob(RealGpu):
    def test_beyond_a_limit_every_way_in(self):
        context = self.context_mib()
        allowed = 4096 + context + 4096 * 5 // 100
        for name in CUDA:
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                with Peak() as peak:
                    done = self.run_program(program(name, *SIX_GIB), SPILL_DEVICE_LIMIT="4GiB")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                records = self.checked_records()
                self.assertLessEqual(self.device_peak_mib(records), 4096)
                self.assertLessEqual(peak.mib, allowed)
                tell(f"{name}: 6 GiB in a limit of 4: data right; vendor's figure {peak.mib} MiB, allowed {allowed} "
                     f"(context {context}); spilled {records[-1]['spilled']['host_bytes'] // MIB} MiB")
                self.tell_hits(records)

    def test_the_host_part_is_read_at_link_speed(self):
        for name in ("gpu_bandwidth", "gpu_bandwidth_static"):
            with self.subTest(name):
                self.log.unlink(missing_ok=True)
                done = self.run_program([str(GPU / name), harness.KERNELS, "4096"], SPILL_DEVICE_LIMIT="1GiB")
                tell(f"{name}: {done.stdout.strip()}")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.checked_records()

    def test_under_real_pressure(self):
        with subprocess.Popen([str(GPU / "gpu_hog"), "2048"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": os.environ["SIM_PATH"]}) as hog:
            tell(f"another process holds the rest by plain allocations; {hog.stdout.readline().strip()}")
            arguments = ("--count", "5", "--mib", "600")
            alone = self.run_program(program("prog_runtime", *arguments), preload=False)
            with_it = self.run_program(program("prog_runtime", *arguments), SPILL_OOM_CHAIN="split, host")
            hog.stdin.close()
        self.assertEqual(alone.returncode, 2, alone.stdout)
        self.assertEqual(with_it.returncode, 0, with_it.stdout + with_it.stderr)
        records = self.checked_records()
        split = [r for r in records if r["kind"] == "alloc" and r["place"] == "split"]
        self.assertTrue(split)
        tell(f"alone: out of memory; with libspill: data right, first spill {held(split[0])}")
        self.tell_hits(records)


class Storm(RealGpu):
    """The random program of tests/storm, as tests/preload/test_storm.py runs it on the simulator; little managed memory."""

    def storm(self, calls, **options):
        done = self.run_program([str(harness.PROGRAMS / "storm"), harness.KERNELS, "1", str(calls), "8", "16384"], **options)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def test_equal_where_there_is_room(self):
        alone = self.storm(20000, preload=False)
        self.assertEqual(self.storm(20000), alone)
        tell(f"20,000 calls on 8 threads give the same results; {alone.splitlines()[0]}")

    def test_no_byte_is_lost_within_a_limit(self):
        for chain in ("split", "host", "managed"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                self.storm(100000, SPILL_DEVICE_LIMIT="160MiB", SPILL_OOM_CHAIN=f"trim, {chain}")
                last = self.checked_records()[-1]
                tell(f"{chain}: {last['allocs']} allocations, {last['spills']} spills, all words right; left {last['live']}")
                self.assertEqual(set(last["live"].values()), {0})
                self.assertGreater(last["spills"], 0)


class ContextsEnd(RealGpu):
    def test_spilled_memory_goes_with_its_context(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                done = self.run_program([sys.executable, str(HERE / "reset_job.py")], SPILL_OOM_CHAIN=chain,
                                        SPILL_DEVICE_LIMIT="900MiB")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                records = self.checked_records()
                self.assertEqual(records[-1]["live"], {"device_bytes": 0, "host_bytes": 0, "managed_bytes": 0})
                reasons = [r["reason"] for r in records if r["kind"] == "free"]
                self.assertEqual((reasons.count("reset"), reasons.count("context")), (12, 12))
                for line in done.stdout.splitlines():
                    tell(f"{chain}: {line}")
                    before, after = (int(word) for word in line.split() if word.isdigit())
                    self.assertLessEqual(before - after, 64)


class GreenContexts(RealGpu):
    """The program of tests/preload/test_green.py: what is placed in a part of the device outlives that part, and moves."""

    def green(self, **options):
        done = self.run_program([str(harness.PROGRAMS / "green"), harness.KERNELS, "12", "64"], timeout=100, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.strip()

    def test_memory_outlives_its_green_context(self):
        tell(self.green(preload=False))
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                said = self.green(SPILL_OOM_CHAIN=f"trim, {chain}", SPILL_DEVICE_LIMIT="350MiB", SPILL_MOVABLE_ENABLE="off")
                last = self.checked_records()[-1]
                tell(f"{chain}: {said}; {last['allocs']} allocations, {last['spills']} spills")
                self.assertGreater(last["spills"], 8)
                self.assertEqual(set(last["live"].values()), {0})

    def test_memory_moves_beside_green_contexts(self):
        said = self.green(SPILL_OOM_CHAIN="trim, demote, split, host", SPILL_DEVICE_LIMIT="600MiB", SPILL_MOVABLE_ENABLE="on",
                          SPILL_MOVABLE_FOLLOW="on")
        records = self.checked_records()
        tell(f"{said}; {sum(record['kind'] == 'move' for record in records)} moves")
        self.assertEqual(set(records[-1]["live"].values()), {0})
        self.assertGreater(sum(record["kind"] == "move" for record in records), 2)


class LooksLikeDeviceMemory(RealGpu):
    def test_same_answers_in_every_place(self):
        for name in CUDA:
            arguments = ("--count", "3", "--mib", "600")
            alone = self.run_program(program(name, *arguments), preload=False)
            for chain in ("split", "managed", "host"):
                with self.subTest(name, chain=chain):
                    self.log.unlink(missing_ok=True)
                    done = self.run_program(program(name, *arguments), SPILL_OOM_CHAIN=chain, SPILL_DEVICE_LIMIT="1GiB")
                    self.assertEqual(done.stdout, alone.stdout)
                    self.assertIn(chain, {r["place"] for r in self.checked_records() if r["kind"] == "alloc"})

    def test_small_ones_too(self):
        arguments = ("--count", "10000", "--kib", "4")
        alone = self.run_program(program("prog_driver_link", *arguments), preload=False)
        done = self.run_program(program("prog_driver_link", *arguments), SPILL_DEVICE_LIMIT="1MiB")
        self.assertEqual(done.stdout, alone.stdout)
        records = self.checked_records()
        self.assertGreater(records[-1]["spills"], 9000)

    def test_small_ones_share_host_memory(self):
        for chain in ("split", "managed", "host"):
            with self.subTest(chain):
                done = self.run_program([sys.executable, str(HERE / "small_job.py")], SPILL_OOM_CHAIN=chain,
                                        SPILL_DEVICE_LIMIT="0")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                tell(f"{chain}: 10,000 of 4 KiB took {done.stdout.strip()} MiB of the host's memory")
                self.assertLessEqual(int(done.stdout), 40 + 64)


class Nvml(RealGpu):
    """meminfo.report by NVML and by the driver, of a device that nobody else uses."""

    # Not from a child: with driver 580.159.04 one that asks NVML ends without an answer, with libspill and without.
    JOB = [sys.executable, str(HERE.parent / "preload/nvml_job.py"),
           *"first:0 device:0 cuda first:0 second:0 alloc:1024 cuda first:0 second:0 first:0".split()]

    def ask(self, **variables):
        done = self.run_program(self.JOB, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        for line in done.stdout.splitlines():
            tell(line)
        return [line.split() for line in done.stdout.splitlines()]

    def test_honest_is_nvmls_own_answer(self):
        alone, with_us = self.ask(preload=False), self.ask(SPILL_DEVICE_LIMIT="4GiB")
        # What is free is not the same twice; the largest figure is the total.
        self.assertEqual([line[:2] + [max(line[1:], key=int)] for line in with_us],
                         [line[:2] + [max(line[1:], key=int)] for line in alone])

    def test_both_tell_the_limit(self):
        before, _, driver, first, second, _, *after = self.ask(SPILL_MEMINFO_REPORT="limit", SPILL_DEVICE_LIMIT="4GiB")
        gib = 1 << 30
        self.assertGreater(int(before[2]), 4 * gib, "before there is a context")
        # total, free, used; with what is reserved before free in the second form
        self.assertEqual(driver[1:], ["0", str(4 * gib), str(4 * gib)])
        self.assertEqual(first[1:], ["0", str(4 * gib), str(4 * gib), "0"])
        self.assertEqual([second[1], *second[3:]], ["0", str(4 * gib), "0", str(4 * gib), "0"])
        driver, first, second, _ = after
        self.assertEqual(driver[1:], ["0", str(3 * gib), str(4 * gib)])
        self.assertEqual(first[1:], ["0", str(4 * gib), str(3 * gib), str(gib)])
        self.assertEqual([second[3], second[5]], [str(4 * gib), str(3 * gib)])


class VendorFacts(RealGpu):
    def test_the_driver_does_what_the_code_follows(self):
        for facts in sorted(HERE.glob("vendor_facts*.py")):
            with self.subTest(facts.name):
                done = self.run_program([sys.executable, str(facts)], preload=False)
                for line in done.stdout.splitlines():
                    tell(line)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Unchanged(RealGpu):
    """Off, observing, and with room: nothing differs. And the simulator's records are what this GPU says."""

    def test_off_observe_and_room(self):
        for name in CUDA:
            arguments = ("--count", "3", "--mib", "64")
            alone = self.run_program(program(name, *arguments), preload=False)
            for variables in ({"SPILL": "0"}, {"SPILL_MODE": "observe"}, {},
                              {"SPILL_MODE": "observe", "SPILL_DEVICE_LIMIT": "100MiB"}):
                with self.subTest(name, **variables):
                    done = self.run_program(program(name, *arguments), **variables)
                    # The program asks for more than any device has once, which is told.
                    self.assertEqual((done.returncode, done.stdout, apart(done.stderr)[0]),
                                     (alone.returncode, alone.stdout, alone.stderr))

    def test_the_simulators_own_contract_holds_here(self):
        # Eager loading: a kernel that is loaded at its first launch waits for one that is held (CUDA Programming Guide).
        for name in ("", "_memory", "_vmm", "_work", "_pool", "_share", "_processes", "_array", "_peer", "_edges", "_capture", "_graph", "_update",
                     "_nvml", "_green"):
            with self.subTest("test_driver" + name):
                done = self.run_program([str(GPU.parent / f"sim/test/test_driver{name}"), harness.KERNELS], preload=False,
                                        CUDA_MODULE_LOADING="EAGER")
                for line in done.stdout.splitlines():
                    if not line.startswith("ok"):
                        tell(line)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_simulator_has_the_right_answers(self):
        for name in CUDA:
            recorded = "runtime.txt" if "runtime" in name else "driver.txt"
            with self.subTest(name):
                done = self.run_program(program(name, "--mib", "6"), preload=False)
                self.assertEqual(done.stdout, (RECORDED / recorded).read_text(encoding="utf-8"))

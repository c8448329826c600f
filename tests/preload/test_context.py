"""Contexts end with live spilled allocations in them: each is released exactly once, and all memory comes back."""
import unittest

from harness import MIB, PROGRAMS, decided, freed, of_release
from scripted import MOVED, ScriptCase

CHAINS = ("split", "managed", "host")
# Three of 4 MiB are the device's, two spill; 20 of 100 KiB share chunks (the device has 2 MiB left for the first).
LIVE = "alloc:x:4m:5 alloc:s:100k:40 fill:x fill:s verify:x verify:s"
AGAIN = "info alloc:y:4m:5 fill:y verify:y free:y info"


class ContextCase(ScriptCase):
    movable = "off"

    def chains(self, words, check, **variables):
        for chain in CHAINS:
            with self.subTest(chain):
                self.log.unlink(missing_ok=True)
                done = self.script(words, SPILL_OOM_CHAIN=chain, **variables)
                check(done, self.checked_records(), chain)

    def all_ended(self, reason):
        """What LIVE made ended for that reason, once each (check_log); all else was freed."""

        def check(done, records, chain):
            self.good(done)
            allocs = {r["seq"]: r for r in decided(records)}
            ended = [allocs[r["seq"]] for r in freed(records) if r["reason"] == reason]
            self.assertEqual(len([r for r in ended if r["bytes"] == 4 * MIB]), 5)
            self.assertEqual(len([r for r in ended if r["bytes"] == 100 << 10]), 40)
            self.assertEqual({r["place"] for r in ended}, {"device", chain})
            self.assertEqual({r["reason"] for r in records if r["kind"] == "free"}, {reason, "free"})
            self.assertEqual(set(records[-1]["live"].values()), {0})
            self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 2)
            before, after = self.numbers(done, "host")
            self.assertLess(after - before, MIB // 2, "host memory came back")

        return check


class End(ContextCase):
    def test_destroy(self):
        self.chains(f"retain:0 host create:a:0 {LIVE} destroy:a host retain:0 {AGAIN}", self.all_ended("context"))

    def test_primary_release(self):
        """The first of two releases ends nothing."""
        self.chains(f"create:z:0 host retain:0 retain:0 {LIVE} release:0 verify:x verify:s release:0 host retain:0 "
                    f"{AGAIN}", self.all_ended("context"))

    def test_primary_reset(self):
        """However often it was retained."""
        self.chains(f"create:z:0 host retain:0 retain:0 {LIVE} reset:0 host retain:0 {AGAIN}", self.all_ended("reset"))

    def test_many_rounds_leave_no_charge(self):
        """The accounts come back too: with a limit for one round of host memory every round is served."""
        words = "create:a:0 alloc:x:4m:5 alloc:s:100k:40 destroy:a " * 8
        self.chains(words, lambda done, records, chain: self.good(done), SPILL_HOST_LIMIT="20MiB")

    def test_an_empty_chunk_goes_with_its_context(self):
        """A context all of whose allocations were freed has kept one chunk for the next."""

        def check(done, records, chain):
            self.good(done)
            before, kept, after = self.numbers(done, "host")
            self.assertGreater(kept - before, 2 * MIB, "a chunk was kept; else this test shows nothing")
            self.assertLess(after - before, MIB // 2)

        self.chains("retain:0 host create:a:0 alloc:d:4m:3 alloc:s:100k:60 fill:s free:s free:d host destroy:a host", check,
                    SPILL_DEVICE_LIMIT="13MiB")

    def test_what_is_gone_is_not_freed_again(self):
        def check(done, records, chain):
            results = dict(self.results(done))
            self.assertEqual(results["again:x"], "CUDA_ERROR_INVALID_VALUE")
            self.assertEqual(results["verify:y"], "CUDA_SUCCESS")

        self.chains("create:a:0 alloc:x:4m:5 destroy:a retain:0 again:x alloc:y:4m:5 fill:y verify:y free:y", check)

    def test_another_contexts_memory_stays(self):
        def check(done, records, chain):
            self.good(done)
            self.assertEqual(len([r for r in freed(records) if r["reason"] == "context"]), 24)

        self.chains("create:a:0 alloc:d:4m:3 create:b:0 alloc:x:4m:2 alloc:s:100k:30 fill:x fill:s use:a alloc:y:4m "
                    "alloc:t:100k:20 destroy:a use:b verify:x verify:s free:x free:s destroy:b", check)

    def test_a_call_that_fails_ends_nothing(self):
        """A primary context is not destroyed but released."""

        def check(done, records, chain):
            results = dict(self.results(done))
            self.assertEqual(results.pop("destroy:p"), "CUDA_ERROR_INVALID_CONTEXT")
            self.assertEqual(set(results.values()), {"CUDA_SUCCESS"})
            self.assertEqual({r["reason"] for r in records if r["kind"] == "free"}, {"free"})

        self.chains("retain:0 alloc:x:4m:5 fill:x destroy:p verify:x free:x", check)

    def test_device_reset_of_the_runtimes(self):
        seven = {"LD_LIBRARY_PATH": of_release(7)}
        for name, chains, path in (("reset_cuda", CHAINS, {}), ("reset_hip", ("managed", "host"), {}),
                                   ("reset_hip_7", CHAINS, seven)):
            roomy = self.run_in([str(PROGRAMS / name)],
                                self.environment(preload=False, SPILL_SIM_VRAM="64MiB", **path)).stdout.replace(
                                    str(64 * MIB), str(14 * MIB))
            self.assertIn(f"free {14 * MIB} of {14 * MIB}", roomy)
            for chain in chains:
                with self.subTest(name, chain=chain):
                    self.log.unlink(missing_ok=True)
                    done = self.run_in([str(PROGRAMS / name)], self.environment(SPILL_OOM_CHAIN=chain, **path))
                    self.assertEqual(done.stdout, roomy)
                    self.assertEqual(done.returncode, 0)
                    records = self.checked_records()
                    frees = [r["reason"] for r in records if r["kind"] == "free"]
                    self.assertEqual(frees, ["reset"] * 50)
                    self.assertEqual(set(records[-1]["live"].values()), {0})
                    self.assertIn(chain, {r["place"] for r in records if r["kind"] == "alloc"})


class Moved(ContextCase):
    """The same while chunks of what ends are on host, and others in their place on the device."""

    movable = "on"

    def moved(self, words, reason, **variables):
        """The data was right before the end, and for whoever comes next all memory is back."""
        self.log.unlink(missing_ok=True)
        done = self.good(self.script(words, **MOVED, **variables))
        records = self.checked_records()
        self.assertEqual(self.moves(records)[:3], [(0, 2), (0, 2), (1, 2)])
        ended = [r for r in freed(records) if r["reason"] == reason]
        self.assertEqual(len([r for r in ended if r["place"] == "movable"]), 5)
        self.assertEqual({r["reason"] for r in freed(records)} - {"free"}, {reason})
        self.assertEqual(set(records[-1]["live"].values()), {0})
        return done

    def all_back(self, done):
        self.assertEqual(self.numbers(done, "free"), [14 * MIB] * 2)
        before, after = self.numbers(done, "host")
        self.assertLess(after - before, MIB // 2, "host memory came back")

    def test_destroy(self):
        self.all_back(self.moved(f"retain:0 host create:a:0 {LIVE} destroy:a host retain:0 {AGAIN}", "context"))

    def test_primary_release(self):
        self.all_back(self.moved(f"create:z:0 host retain:0 retain:0 {LIVE} release:0 verify:x verify:s release:0 host "
                                 f"retain:0 {AGAIN}", "context"))

    def test_primary_reset(self):
        self.all_back(self.moved(f"create:z:0 host retain:0 retain:0 {LIVE} reset:0 host retain:0 {AGAIN}", "reset"))

    def test_another_contexts_memory_moves_for_it_and_stays(self):
        """The context that has to make way is not the one that asks; nor does it end with it."""
        done = self.good(self.script("create:a:0 alloc:d:4m:3 fill:d create:b:0 alloc:x:4m:2 fill:x verify:x destroy:b use:a "
                                     "verify:d free:d info", **MOVED))
        self.assertEqual(self.moves(self.checked_records()), [(0, 2), (0, 2), (1, 2)])
        self.assertEqual(self.numbers(done, "free"), [14 * MIB])

    def test_the_context_that_moved_is_the_one_that_ended(self):
        """The next move is in another: what moves need (a stream, events) went with the first."""
        done = self.good(self.script("create:a:0 create:b:0 use:a alloc:x:4m:5 fill:x verify:x destroy:a use:b alloc:y:4m:5 fill:y "
                                     "verify:y free:y info", **MOVED))
        self.assertEqual(self.moves(self.checked_records()), [(0, 2), (0, 2), (1, 2), (5, 2), (5, 2), (6, 2)])
        self.assertEqual(self.numbers(done, "free"), [14 * MIB])

    def test_many_rounds_leave_no_charge(self):
        words = "create:a:0 alloc:x:4m:5 fill:x verify:x destroy:a " * 8
        self.good(self.script(words, SPILL_HOST_LIMIT="7MiB", **MOVED))
        records = self.checked_records()
        self.assertEqual(len(self.moves(records)), 3 * 8)
        self.assertEqual(set(records[-1]["live"].values()), {0})

    def test_a_reset_of_one_device_leaves_the_other(self):
        self.good(self.script("retain:0 alloc:a:4m:5 fill:a retain:1 alloc:b:4m:5 fill:b reset:1 retain:0 verify:a free:a",
                              SPILL_SIM_DEVICES=2, **MOVED))
        records = self.checked_records()
        self.assertEqual(self.moves(records), [(0, 2), (0, 2), (1, 2), (5, 2), (5, 2), (6, 2)])
        self.assertEqual(len([r for r in freed(records) if r["reason"] == "reset"]), 5)


class Free(ContextCase):
    def test_waits_for_the_owning_context(self):
        """The kernel that writes runs in the owner; another context is current, or none of the same device."""

        def check(done, records, chain):
            self.good(done)
            self.assertIn("the kernel was done when the free returned", done.stdout)
            allocs = {r["seq"]: r["place"] for r in records if r["kind"] == "alloc" and r["bytes"] == 6 * MIB}
            self.assertEqual(list(allocs.values()), [chain])

        self.chains("create:a:0 create:b:0 use:a alloc:d:4m:3 alloc:x:6m use:b freeheld:x info", check)
        self.chains("retain:1 create:b:1 retain:0 alloc:d:4m:3 alloc:x:6m use:b freeheld:x info", check,
                    SPILL_SIM_DEVICES=2)

    def test_a_block_of_a_chunk_waits_too(self):
        def check(done, records, chain):
            self.good(done)
            self.assertIn("the kernel was done when the free returned", done.stdout)

        self.chains("create:a:0 create:b:0 use:a alloc:d:4m:3 alloc:e:1m:2 alloc:x:100k use:b freeheld:x", check)

    def test_from_another_thread(self):
        def check(done, records, chain):
            self.good(done)
            self.assertEqual(self.numbers(done, "free"), [14 * MIB])
            # A thread of its own freed them; the log says which.
            self.assertEqual(len({r["tid"] for r in freed(records)}), 1)
            self.assertTrue({r["tid"] for r in freed(records)}
                            .isdisjoint({r["tid"] for r in records if r["kind"] == "alloc"}))

        self.chains("retain:0 alloc:x:4m:5 fill:x verify:x freethread:x info", check)


class TwoDevices(ContextCase):
    def placed(self, records, device):
        return [r["place"] for r in decided(records) if r["dev"] == device]

    def test_limits_of_their_own(self):
        policy = self.folder / "policy.conf"
        policy.write_text("[device]\nlimit = 9MiB\n[device 1]\nlimit = 5MiB\n[oom]\nchain = host\n")
        policy.chmod(0o600)
        by_file = {"SPILL_POLICY": policy}
        shared = self.folder / "shared.conf"
        shared.write_text("[app other]\noom.chain = managed\n[app scr*]\ndevice.limit = 9MiB\noom.chain = host\n"
                          "[device]\nlimit = 1MiB\n[device 1]\nlimit = 5MiB\n")
        shared.chmod(0o600)
        by_app = {"SPILL_POLICY": shared}
        by_variables = {"SPILL_DEVICE_LIMIT": "9MiB", "SPILL_DEVICE_1_LIMIT": "5MiB", "SPILL_OOM_CHAIN": "host"}
        for variables in (by_file, by_app, by_variables):
            self.log.unlink(missing_ok=True)
            done = self.script("retain:1 alloc:a:4m:4 fill:a verify:a retain:0 alloc:b:4m:4 fill:b verify:b info "
                               "free:b info retain:1 free:a info", SPILL_SIM_DEVICES=2, **variables)
            self.good(done)
            records = self.checked_records()
            self.assertEqual(self.placed(records, 0), ["device"] * 2 + ["host"] * 2)
            self.assertEqual(self.placed(records, 1), ["device"] + ["host"] * 3)
            self.assertEqual(self.numbers(done, "free"), [6 * MIB, 14 * MIB, 14 * MIB])
            self.assertEqual({r["reason"] for r in decided(records) if r["place"] == "host"}, {"limit"})

    def test_a_reset_of_one_leaves_the_other(self):
        def check(done, records, chain):
            self.good(done)
            self.assertEqual(len([r for r in freed(records) if r["reason"] == "reset"]), 5)

        self.chains("retain:0 alloc:a:4m:5 fill:a retain:1 alloc:b:4m:5 fill:b reset:1 retain:0 verify:a free:a", check,
                    SPILL_SIM_DEVICES=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""A random program of many allocation calls on 8 threads: equal with and without libspill where there is room, and no byte lost where there is not."""
import os
import pathlib
import re
import unittest

from harness import KERNELS, PROGRAMS, Case

SEED = int(os.environ.get("STORM_SEED", "1"))
CALLS = int(os.environ.get("STORM_CALLS", "30000"))
THREADS = 8

# Rows that the storm has no use for: ends of the whole device, other forms of a call it makes by another, look-ups.
ELSEWHERE = re.compile(r"cuGetProcAddress|cuDevicePrimaryCtxReset|cuDevicePrimaryCtxRelease$|cuStreamBeginCapture|cuStreamEndCapture_ptsz"
                       r"|cuGraphAddNode|cuCtxDisablePeerAccess|cuMemGetHandleForAddressRange|cuStreamDestroy$"
                       r"|cuCtxDestroy$|cuGreenCtxDestroy|cuMemHostRegister$|cuMemPoolExportToShareableHandle|cuMulticastBind|cuLogicalEndpointBind|cuMemGet(Default)?MemPool"
                       r"|cuIpcOpenMemHandle|cuIpcCloseMemHandle|cuMemPoolSetAccess|cuMemPool[GS]etAttribute")


class Storm(Case):
    level = None  # the default, with sums

    def storm(self, vram, *words, preload=True, calls=CALLS, largest_kib=1024, **variables):
        command = [str(PROGRAMS / "storm"), KERNELS, str(SEED), str(calls), str(THREADS), str(largest_kib), *words]
        done = self.run_program(command, vram=vram, preload=preload, **variables)
        self.assertEqual(done.returncode, 0, f"seed {SEED}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def first_difference(self, **variables):
        """The first line that differs, for a person to begin with."""
        said = []
        for preload in (False, True):
            folder = self.folder / f"trace-{preload}"
            folder.mkdir()
            self.storm("4GiB", "trace", str(folder), preload=preload, **(variables if preload else {}))
            said.append([pathlib.Path(folder / str(i)).read_text(encoding="utf-8").splitlines() for i in range(THREADS)])
        for thread, (alone, under) in enumerate(zip(*said)):
            for before, after in zip(alone, under):
                if before != after:
                    return f"seed {SEED}, thread {thread}: alone '{before}', under libspill '{after}'"
        return "no line differs now"

    def test_equal_where_there_is_room(self):
        """With all that there is in the first run, which the log's hits tell."""
        for calls, modes in ((CALLS, [{}]), (CALLS // 4, [{"SPILL_LOG": "off"}, {"SPILL_MODE": "observe"}, {"SPILL": "0"}])):
            alone = self.storm("4GiB", preload=False, calls=calls).stdout
            for variables in modes:
                with self.subTest(**variables):
                    if self.storm("4GiB", calls=calls, **variables).stdout != alone:
                        self.fail(self.first_difference(**variables))
                    if not variables:
                        self.every_row_is_in_it(self.records()[-1]["hits"])

    def test_no_byte_is_lost_where_there_is_none(self):
        for variables in ({}, {"SPILL_OOM_CHAIN": "host"}, {"SPILL_OOM_CHAIN": "managed"}, {"SPILL_DEVICE_LIMIT": "60MiB"}):
            with self.subTest(**variables):
                self.log.unlink(missing_ok=True)
                self.storm("96MiB", calls=CALLS // 2, **variables)
                last = self.checked_records()[-1]
                self.assertEqual(set(last["live"].values()), {0}, "nothing is left in the ledger")
                self.assertGreater(last["spills"], 0)

    def every_row_is_in_it(self, hits):
        hit = {line["symbol"] for line in hits}
        table = (pathlib.Path(__file__).parents[2] / "docs/hooks.md").read_text(encoding="utf-8")
        # Rows about memory; what submits work or waits for it, needs room for itself, changes that or gives it back is not the storm's business.
        rows = re.findall(r"^\| CUDA_DRIVER \| `(\w+)` .* (?!GATE|ROOM|SYNCHRONIZE|UNLOAD|GRAPH_CHANGE|GRAPH_END|CONTEXT_CREATE|PRIMARY_RETAIN)\w+ \|$", table, re.MULTILINE)
        self.assertGreater(len(rows), 60)
        self.assertEqual([row for row in rows if row not in hit and not ELSEWHERE.search(row)], [])


if __name__ == "__main__":
    unittest.main()

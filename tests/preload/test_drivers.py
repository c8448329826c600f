"""Older and newer drivers: each does what it can, and nothing moves under work in flight.

Before 12.2 there is no cuMemCreate of host memory. From then to 12.8 there is no attribute that tells so, and before 12.5 there is no
cuCtxRecordEvent, so nothing moves.
"""
import unittest

from drivers import VERSIONS, path_of
from harness import MIB
from movable_case import MovableCase

FULL = "early:s:64k early:a:40m fill:a"  # of 64 MiB; s is no movable memory
# Work that does not end before the second words, in each kind of stream.
WORK = {"a stream that does not wait for the default one": ("hold:s", "go join"),
        "a stream that does": ("on:blocking hold:s", "go join"),
        "the legacy default stream": ("on:legacy hold:s", "go join"),
        "the thread's default stream": ("on:thread hold:s", "go join"),
        "another thread's default stream": ("elsewhere:s", "go join"),
        "a stream that is destroyed": ("hold:s drop", "go sync"),
        "a blocking stream that is destroyed": ("on:blocking hold:s drop", "go sync")}

# Versions of the driver that have the function first.
SINCE = {"cuMemCreate": 10020, "cuCtxRecordEvent": 12050, "cuMemcpyBatchAsync": 12080}
# In a process of its own, because all drivers have one name.
ASKS = """
import ctypes, struct, sys
driver, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
for name in sys.argv[1:]:
    found.value = None
    driver.cuGetProcAddress(name.encode(), ctypes.byref(found), 13010, ctypes.c_uint64(0))
    print(hasattr(driver, name), bool(found))
driver.cuInit(0)
# The granularity of memory on the host, by CUmemAllocationProp. The attribute that tells of it.
size, pinned_on_host = ctypes.c_size_t(), struct.pack("iiiiQQ", 1, 0, 3, 0, 0, 0)
print(driver.cuMemGetAllocationGranularity(ctypes.byref(size), pinned_on_host, 0) == 0)
print(driver.cuDeviceGetAttribute(ctypes.byref(ctypes.c_int()), 141, 0) == 0)
"""


class Drivers(MovableCase):
    def on(self, version, words, preload=True, **variables):
        return self.all_right(self.program(words, preload=preload, LD_LIBRARY_PATH=path_of(version, self.folder), **variables))

    def test_a_driver_has_what_its_version_has(self):
        """Functions by their symbol and by cuGetProcAddress, whatever version the program asks for; memory; attributes."""
        for version in VERSIONS:
            with self.subTest(version):
                number = int(version.replace(".", "0")) * 10
                done = self.run_program(["python3", "-c", ASKS, *SINCE], preload=False, LD_LIBRARY_PATH=path_of(version, self.folder))
                self.assertEqual(done.stderr, "")
                since = [version for version in SINCE.values() for _ in range(2)] + [12020, 12090]
                self.assertEqual(done.stdout.split(), [str(number >= first) for first in since])

    def test_a_newcomer_gets_the_device(self):
        """The data is right, and what moved comes back."""
        for version in ("12.6", "12.8", "13.1"):
            with self.subTest(version):
                done = self.on(version, "early:a:40m fill:a early:b:20m fill:b alloc:c:10m fill:c verify:a verify:b verify:c where:a where:c free:c "
                                        "busy:1 back:a verify:a")
                self.assertEqual((self.where(done, "a"), self.where(done, "c")), (["d" * 17 + "h" * 3], ["d" * 5]))
                self.assertEqual(self.moves("demote")[0]["bytes"], 6 * MIB)
                self.assertEqual(self.checked_records()[0]["driver"], int(version.replace(".", "0")) * 10)

    def test_without_host_chunks_a_newcomer_is_in_managed_memory(self):
        self.on("11.4", f"{FULL} alloc:c:40m fill:c verify:a verify:c")
        self.assertEqual([record["place"] for record in self.allocs()][-1], "managed")
        self.assertEqual(self.moves(), [])

    def test_before_12_5_a_newcomer_is_split(self):
        for version in ("12.2", "12.4"):
            with self.subTest(version):
                self.on(version, f"{FULL} alloc:c:40m fill:c verify:a verify:c")
                self.assertEqual([record["place"] for record in self.allocs()][-1], "split")
                self.assertEqual(self.moves(), [])

    def test_a_driver_that_refuses_host_chunks_is_asked_once(self):
        self.on("12.8", f"{FULL} alloc:b:40m alloc:c:40m fill:b fill:c verify:a verify:b verify:c", SPILL_SIM_CAPS="nohostvmm",
                SPILL_MOVABLE_ENABLE="off")
        self.assertEqual([record["place"] for record in self.allocs()][-2:], ["managed", "managed"])
        tried = [[attempt["error"] for attempt in record["tried"] if attempt["place"] == "split"] for record in self.allocs()[-2:]]
        self.assertEqual(tried, [["CUDA_ERROR_NOT_SUPPORTED"], []])

    def test_work_is_waited_for(self):
        """The request is served otherwise meanwhile. Later something moves."""
        for kind, (before, after) in WORK.items():
            with self.subTest(kind):
                done = self.on("12.6", f"{FULL} {before} alloc:b:40m where:a {after} fill:b verify:b verify:a "
                                       "free:b alloc:c:40m fill:c verify:c verify:a where:a")
                during, end = self.where(done, "a")
                self.assertEqual((during, "h" in end), ("d" * 20, True))

    def test_a_program_that_fits_sees_the_same_calls(self):
        for version in VERSIONS:
            with self.subTest(version):
                seen = []
                for preload in (False, True):
                    trace = self.folder / "trace"
                    trace.unlink(missing_ok=True)
                    self.on(version, "early:a:4m fill:a stream drop verify:a free:a", preload=preload, SPILL_SIM_TRACE=trace,
                            SPILL_MOVABLE_ENABLE="auto")
                    calls = trace.read_text(encoding="utf-8").splitlines()
                    seen.append([call for call in calls if call.startswith(("cuStream", "cuMem", "cuEvent", "cuLaunch")) and call != "cuMemGetInfo_v2"])
                self.assertEqual(seen[0], seen[1])


if __name__ == "__main__":
    unittest.main()

"""Each function of the simulated CUDA runtime that takes memory, served: its driver rows see it, through the shared
runtime and through the static one, whose own functions nobody can interpose."""
import os
import pathlib
import unittest

from harness import Case

ROWS = pathlib.Path(os.environ["ROWS"])

# Calls that the program makes of each, by way of the driver's look-up.
DRIVER = {"cuMemAlloc_v2": 1, "cuMemAllocPitch_v2": 2, "cuMemFree_v2": 4, "cuMemAllocManaged": 1, "cuMemAllocAsync": 2,
          "cuMemAllocFromPoolAsync": 1, "cuMemFreeAsync": 3, "cuMemPoolCreate": 1, "cuMemPoolTrimTo": 1,
          "cuMemPoolDestroy": 1, "cuMemHostAlloc": 2, "cuMemFreeHost": 2, "cuMemHostRegister_v2": 1,
          "cuMemHostUnregister": 1, "cuArray3DCreate_v2": 2, "cuArrayDestroy": 2, "cuMipmappedArrayCreate": 1,
          "cuMipmappedArrayDestroy": 1, "cuStreamBeginCapture_v2": 1, "cuStreamEndCapture": 1, "cuStreamDestroy_v2": 1}
RUNTIME = {"cudaMalloc": 1, "cudaFree": 4, "cudaMallocPitch": 1, "cudaMalloc3D": 1, "cudaMallocManaged": 1,
           "cudaMallocAsync": 2, "cudaFreeAsync": 3, "cudaMallocFromPoolAsync": 1, "cudaMemPoolCreate": 1,
           "cudaMemPoolTrimTo": 1, "cudaMemPoolDestroy": 1, "cudaMallocHost": 1, "cudaHostAlloc": 1, "cudaFreeHost": 2,
           "cudaHostRegister": 1, "cudaHostUnregister": 1, "cudaMallocArray": 1, "cudaMalloc3DArray": 1,
           "cudaFreeArray": 2, "cudaMallocMipmappedArray": 1, "cudaFreeMipmappedArray": 1,
           "cudaGetDriverEntryPointByVersion": 2}


class Served(Case):
    def check(self, name, visible):
        alone = self.run_program([str(ROWS / name)], preload=False)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        failed = [line for line in alone.stdout.splitlines() if not line.startswith("0 ")]
        self.assertEqual(failed, [], "the simulator serves them all")
        for variables in ({}, {"SPILL_MODE": "observe"}):
            self.log.unlink(missing_ok=True)
            done = self.run_program([str(ROWS / name)], **variables)
            self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), done.stderr)
            records = self.checked_records()
            hits = {(hit["symbol"], hit["way"]): hit["count"] for hit in records[-1]["hits"]}
            for symbol, count in DRIVER.items():
                self.assertEqual(hits.get((symbol, "proc")), count, symbol)
            seen = {symbol: count for (symbol, way), count in hits.items() if symbol in RUNTIME and way == "link"}
            self.assertEqual(seen, RUNTIME if visible else {})
            codes = [record["code"] for record in records if record["kind"] == "note"]
            self.assertNotIn("unseen", codes)
            self.assertNotIn("unknown-version", codes)
            apis = {record["api"] for record in records if record["kind"] == "alloc"}
            self.assertIn("cudaMalloc" if visible else "cuMemAlloc_v2", apis)

    def test_shared(self):
        self.check("served", True)

    def test_static(self):
        self.check("served_static", False)


class Arguments(Case):
    def test_a_kind_that_only_the_device_has(self):
        """The arguments choose the operation: fine-grained memory is accounted as device memory and never placed."""
        alone = self.run_program([str(ROWS / "fine")], preload=False)
        self.assertEqual(alone.stdout, "0 0 0\n1 0 0\n")
        done = self.run_program([str(ROWS / "fine")])
        self.assertEqual(done.stdout, alone.stdout)
        allocs = [record for record in self.checked_records() if record["kind"] == "alloc"]
        self.assertEqual([record["place"] for record in allocs], ["device", "device"])
        self.log.unlink()
        done = self.run_program([str(ROWS / "fine")], SPILL_DEVICE_LIMIT="1MiB")
        self.assertEqual(done.stdout, "0 0 0\n1 2 -1\n", done.stderr)
        records = self.checked_records()
        self.assertEqual([record["place"] for record in records if record["kind"] == "alloc"], ["host"])
        self.assertEqual([record["kind"] for record in records if record["kind"] == "oom"], ["oom"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

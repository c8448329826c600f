"""What enters the gate is all that is submitted: libspill's count against NVIDIA's (count_activity.c). Run by scripts/gpu-test."""
import glob
import os
import re
import sys

from real import GPU, HERE, RealGpu, tell
from test_frameworks import needs

TIMEOUT = ["timeout", "-k", "5", "90"]
ROWS = re.findall(r"^\| CUDA_DRIVER \| `(\w+)` \|.*\| GATE \|$", (HERE.parent.parent / "docs/hooks.md").read_text("utf-8"), re.MULTILINE)
# A function of one of these names submits work unless the table says why not.
SUBMITS = re.compile(r"cu(Launch|Memcpy|Memset|GraphLaunch|GraphUpload)")
LEFT_OUT = ("cuLaunchHostFunc", "cuLaunchHostFunc_ptsz")  # runs the program's own code on the host
# Calls that submit nothing: while a stream is captured, with an error, copies of no bytes (count_activity.c).
NOTHING = ("captured", "failed", "empty")
# What a call makes the device run, as CUPTI's records class it.
CLASSES = {"kernel": "cuLaunch", "graph": "cuGraphLaunch", "copy": "cuMemcpy", "set": "cuMemset"}


def libcupti():
    """Its path, or None: of the toolkit, or of the Python package that frameworks come with."""
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    patterns = [f"{home}/{folder}/libcupti.so*" for home in homes if home
                for folder in ("lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib")]
    patterns += [f"{path}/nvidia/*/lib/libcupti.so*" for path in sys.path if path]
    return next((found for pattern in patterns for found in sorted(glob.glob(pattern))), None)


class GateCounts(RealGpu):
    def counted(self, job):
        """(calls by name as (calls, captured, failed, empty), submitted by class, gate entries by symbol, output)"""
        library, out = libcupti(), self.folder / "counts"
        if not library:
            self.skipTest("there is no CUPTI here")
        done = self.run_program([*TIMEOUT, sys.executable, str(HERE / "gate_job.py"), job], COUNT_OUT=out, COUNT_LIBCUPTI=library,
                                CUDA_INJECTION64_PATH=GPU / "libgpu_count.so")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertTrue(out.exists(), f"the driver did not load the counting library: {done.stderr[-2000:]}")
        lines = [line.split() for line in out.read_text(encoding="utf-8").splitlines()]
        self.assertIn(["dropped", "0"], lines)
        calls = {line[1]: tuple(int(word) for word in line[2:]) for line in lines if line[0] == "call"}
        submitted = {line[1]: int(line[3]) for line in lines if line[0] == "record"}
        entries = {}
        for hit in self.checked_records()[-1]["hits"]:
            if hit["symbol"] in ROWS and hit["count"]:
                entries[hit["symbol"]] = entries.get(hit["symbol"], 0) + hit["count"]
        return calls, submitted, entries, done.stdout.strip()

    def check(self, job):
        calls, submitted, entries, said = self.counted(job)
        tell(said)
        tell("entries: " + ", ".join(f"{symbol} {count}" for symbol, count in sorted(entries.items())))
        unknown = [name for name in calls if SUBMITS.match(name) and name not in ROWS and name not in LEFT_OUT]
        self.assertEqual(unknown, [], "a call that submits work has no row")
        self.assertEqual(entries, {name: counts[0] for name, counts in calls.items() if name in ROWS},
                         "entries of the gate, and the driver's calls as CUPTI counts them")
        made = {}
        for which, prefix in CLASSES.items():
            mine = [counts for name, counts in calls.items() if name in ROWS and name.startswith(prefix)]
            made[which] = sum(count - captured - failed - empty for count, captured, failed, empty in mine)
            numbers = map(sum, zip(*(counts[1:] for counts in mine)))
            beside = ", ".join(f"{number} {name}" for name, number in zip(NOTHING, numbers) if number)
            tell(f"{which}: {made[which]} calls submitted{f' ({beside} beside)' if beside else ''}; the device ran "
                 f"what {submitted[which]} submitted")
        self.assertEqual(made, submitted, "what entered the gate, and what the device ran")
        self.assertGreater(submitted["kernel"], 0)

    @needs("torch")
    def test_cublas(self):
        self.check("cublas")

    @needs("torch")
    def test_cudnn(self):
        self.check("cudnn")

    @needs("triton")
    def test_triton(self):
        self.check("triton")

    @needs("jax")
    def test_jax(self):
        self.check("jax")

    @needs("cupy")
    def test_cupy(self):
        self.check("cupy")

"""Long runs with more memory than there is: nothing grows, and ledger, vendor and log stay together. Run by scripts/gpu-test.

SOAK_SECONDS: of each run (40). LLAMA_SERVER and GGUF_PY: as scripts/bench --llama-server takes them; without them the server is
skipped. Managed memory cannot be reached: the chain of every run is given, without it.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

from real import HERE, MIB, RealGpu, tell
from test_frameworks import needs
from test_moves import MOVING

from harness import SPILL

sys.path.insert(0, str(HERE.parent / "bench"))
SECONDS = int(os.environ.get("SOAK_SECONDS", "40"))
LIMIT_MIB = 6144
FIRST = 3  # quiet moments until caches, code and kept memory are there
SLACK = {"resident": 128, "fds": 4, "threads": 4, "held": 64, "beside": 128}  # MiB or a count; growth after FIRST


def table_of(pid, command):
    """MiB by the vendor for one process."""
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(int(line.split(",")[1]) for line in lines if int(line.split(",")[0]) == pid)


class Watched:
    """A process and what it holds, at moments in which it should hold the same."""

    QUERY = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")

    def __init__(self, pid):
        self.pid, self.looks, self.begin = pid, [], time.monotonic()

    def look(self):
        folder = pathlib.Path(f"/proc/{self.pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text(encoding="utf-8").splitlines())
        top = json.loads(subprocess.run([SPILL, "top", "--once", "--json"], capture_output=True, text=True, check=True).stdout)
        rows = [row for row in top["rows"] if row["pid"] == self.pid]
        device, host = (sum(row[name] for row in rows) // MIB for name in ("device_bytes", "host_bytes"))
        vendor = table_of(self.pid, self.QUERY)
        self.looks.append({"resident": int(status["VmRSS"].split()[0]) // 1024, "fds": len(list((folder / "fd").iterdir())),
                           "threads": int(status["Threads"]), "device": device, "host": host, "held": device + host,
                           "vendor": vendor, "beside": vendor - device if vendor else 0})
        tell(f"{time.monotonic() - self.begin:.0f} s: " + ", ".join(f"{name} {value}" for name, value in self.looks[-1].items()))


class Soak(RealGpu):
    follow = None
    level = None

    def start(self, command, **more):
        environment = {**os.environ, **self.preloaded(), "HOME": str(self.folder), "SPILL_OOM_CHAIN": MOVING,
                       "SPILL_DEVICE_LIMIT": f"{LIMIT_MIB}MiB", "SPILL_LOG_MAX": "1GiB", "PYTHONDONTWRITEBYTECODE": "1"}
        self.said = open(self.folder / "said.txt", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(self.said.close)
        process = subprocess.Popen([str(word) for word in command], env=environment, text=True, stderr=self.said, **more)
        self.addCleanup(process.kill)
        return process

    def stderr(self):
        self.said.seek(0)
        return self.said.read()[-2000:]

    def check(self, watched):
        """Nothing grew after the first looks, and the log adds up to what the program counted."""
        self.assertGreater(len(watched.looks), FIRST)
        base = watched.looks[FIRST - 1]
        for name, slack in SLACK.items():
            self.assertLessEqual(watched.looks[-1][name] - base[name], slack, name)
        run = self.reported()
        tell(f"log: {self.log.stat().st_size / MIB:.1f} MiB, {run['totals']['allocs']} allocations, "
             f"{run['totals']['demoted_bytes'] >> 30} GiB moved out, {run['totals']['promoted_bytes'] >> 30} in, "
             f"{run['totals']['ooms']} out of memory")
        self.assertGreater(run["totals"]["demoted_bytes"], 0)
        return run

    @needs("torch")
    def test_pytorch(self):
        process = self.start([sys.executable, HERE / "soak_job.py", SECONDS, LIMIT_MIB * 3 // 2, 1], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        watched, line = Watched(process.pid), ""
        for line in process.stdout:
            if line.startswith("quiet"):
                watched.look()
                process.stdin.write("\n")
                process.stdin.flush()
        self.assertEqual((process.wait(60), line.split()[:1]), (0, ["done"]), self.stderr())
        tell(line.strip())
        run = self.check(watched)
        self.assertEqual(run["totals"]["ooms"], run["honest"])

    @unittest.skipUnless("LLAMA_SERVER" in os.environ, "no LLAMA_SERVER")
    def test_server(self):
        """Four clients at once, with prompts and answers of random length, and now and then the same question alone."""
        import table_llama  # pylint: disable=import-outside-toplevel
        import table_server  # pylint: disable=import-outside-toplevel
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(os.environ.get("GGUF", pathlib.Path(folder) / "model.gguf"))
            if not model.exists():
                table_llama.make_model(os.environ["GGUF_PY"], model)
            process = self.start([os.environ["LLAMA_SERVER"], "-m", model, *table_server.SERVER], stdout=subprocess.DEVNULL)
            table_server.wait_until_ready(process, self.folder / "said.txt")
            watched, chance, answers, tokens = Watched(process.pid), random.Random(1), set(), 0
            while time.monotonic() - watched.begin < SECONDS:
                tokens += table_server.busy(chance, min(SECONDS / 8, 12))
                answers.add(tuple(table_server.ask(0, table_server.TOKENS)[0]))
                watched.look()
            process.terminate()
            process.wait(60)
        tell(f"{tokens} tokens by four clients")
        self.assertEqual(len(answers), 1, "the same question alone has the same answer")
        self.check(watched)

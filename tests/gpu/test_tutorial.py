"""The tutorial's path (docs/tutorial.md) with PyTorch on a real GPU that another process has filled. Run by scripts/gpu-test.

Managed memory cannot be reached: the chain is given, without it. With TESTS_KEEP=FOLDER everything that a reader of docs/examples
wants stays there: a transcript, the logs, the reports.
"""
import os
import sys

from hog import Hog
from real import GPU, HERE, RealGpu, tell
from test_frameworks import needs

from harness import MIB, SPILL

LAYERS, TOKENS = 20, 640
LIMITED = ["timeout", "-k", "5", "100"]
JOB = [*LIMITED, sys.executable, str(HERE / "tutorial_job.py"), str(LAYERS), str(TOKENS)]
TABLE = 80 * MIB
LACKING = 1200  # MiB that the device has too little; the tables of all layers are 1,600
CHAIN = {"SPILL_OOM_CHAIN": "trim,demote,split,host"}
RULE = """# Each token reads all of a weight, and one row of a table. The report shows that weights have left; tables can better be spared.
[rule tables]
size = 80MiB
caller = libc10_cuda.so*
place = host
"""


@needs("torch")
class Tutorial(RealGpu):
    def at(self, name):
        return str(self.folder / name)

    def shown(self, command, expected=(0,), **variables):
        """Runs a command without the library, which `spill run` brings, and writes it and what it prints into the transcript."""
        done = self.run_program(command, preload=False, **variables)
        words = " ".join([f"{name}={value}" for name, value in variables.items()] + [os.path.basename(word) for word in command])
        words = words.replace(" ".join(LIMITED) + " ", "")
        text = (done.stderr + done.stdout).replace(f"{self.folder}/", "")
        with open(self.at("transcript.txt"), "a", encoding="utf-8") as transcript:
            transcript.write(f"$ {words}\n{text}[exit status {done.returncode}]\n\n")
        self.assertIn(done.returncode, expected, text[-3000:])
        return done

    def spill(self, *words, expected=(0,), **variables):
        return self.shown([str(SPILL), *words], expected, **variables)

    def run_under(self, name, *options):
        """The job under libspill, and its report. Returns what it printed, and its log's records."""
        done = self.spill("run", "-l", self.at(f"{name}.jsonl"), *options, "--", *JOB, **CHAIN)
        records = self.checked_records(self.folder / f"{name}.jsonl")
        report = self.spill("report", self.at(f"{name}.jsonl"))
        (self.folder / f"{name}.txt").write_text(report.stdout, encoding="utf-8")
        last = records[-1]
        tell(f"{name}: {'; '.join(done.stderr.splitlines()[-2:])}; {last['spills']} spills, "
             f"{last.get('demoted_bytes', 0) // MIB} MiB moved to the host")
        return done, records

    def test_out_of_memory_report_rule_again(self):
        self.spill("doctor", "--", *JOB[len(LIMITED):], expected=(0, 1))
        enough = self.shown(JOB)
        needed = int(enough.stderr.splitlines()[-1].split()[0])
        with Hog(GPU.parent.parent, needed - LACKING, os.environ["SIM_PATH"]) as hog:
            tell(f"the job needs {needed} MiB; {hog.said}")
            alone = self.shown(JOB, (1,))
            self.assertIn("OutOfMemoryError", alone.stderr)
            self.assertIn(f"{LAYERS} layers loaded", alone.stderr, "it dies later, as its cache grows")

            first, records = self.run_under("first")
            self.assertEqual(first.stdout, enough.stdout)
            self.assertGreater(records[-1]["demoted_bytes"], 0)
            wanted = self.reported(self.folder / "first.jsonl")["devices"][0]["fit"]["wanted"] // MIB
            others = int(hog.said.split()[4]) - hog.free_mib + max(needed - wanted, 0)  # the other process, and contexts

            (self.folder / "tables.conf").write_text(RULE, encoding="utf-8")
            self.spill("check", self.at("tables.conf"))
            second, records = self.run_under("second", "-p", self.at("tables.conf"))
            self.assertEqual(second.stdout, enough.stdout)
        placed = [record for record in records if record["kind"] == "alloc" and record.get("rule") == "tables"]
        self.assertEqual([(record["place"], record["bytes"]) for record in placed], [("host", TABLE)] * LAYERS)
        self.spill("replay", self.at("first.jsonl"), "--policy", self.at("tables.conf"), "--other", f"{others}MiB",
                   expected=(0, 1))
        logs = self.at("first.jsonl"), self.at("second.jsonl")
        report = self.run_program([SPILL, "report", "--json", *logs], preload=False)
        (self.folder / "report.json").write_text(report.stdout, encoding="utf-8")
        self.spill("report", "--html", self.at("report.html"), *logs)
        self.assertEqual(records[-1].get("demoted_bytes", 0), 0, "what each token reads whole stays on the device")

"""The benchmarks themselves, in small on the simulated GPU: they end well and their data is right. No figure is judged."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/bench"))
import benchlib  # noqa: E402
import table_allocators  # noqa: E402
import table_decode  # noqa: E402
import table_follow  # noqa: E402
import table_llama  # noqa: E402
import table_programs  # noqa: E402
import table_ranks  # noqa: E402

STAND_IN = TOP / "tests/bench/stand_in"
# A command that takes longer hangs. More where programs run by an emulator (scripts/aarch64).
PATIENCE_S = 120 * int(os.environ.get("PATIENCE", "1"))


class Limit(unittest.TestCase):
    """The least time of a step, by hand: 1 GB/s from the host, 1000 from the device."""

    RUN = {"weights": 4e9, "buffer": 2e9, "times": 4, "scratch": 1e9}

    def limit(self, free):
        return table_decode.limit_us(self.RUN, free, (1.0, 1000.0))

    def test_all_on_the_device(self):
        self.assertEqual(self.limit(7e9), (4e3 + 8e3 + 2e3, 0))

    def test_the_least_read_goes_first(self):
        us, host = self.limit(5e9)
        self.assertAlmostEqual(us, 2e6 + 2e3 + 8e3 + 2e3)
        self.assertEqual(host, 2e9)

    def test_then_the_scratch_then_the_buffer(self):
        us, host = self.limit(1e9)
        self.assertAlmostEqual(us, 4e6 + 2 * 1e6 + 4 * 1e6 + 4e3)
        self.assertEqual(host, 4e9 + 2e9 + 4e9)


class FollowedRuns(unittest.TestCase):
    """What is read of a job's output, also if it was cut off."""

    def measured(self, times, answers, status=0, enough=None):
        steps = "".join(f"step {i} {ms}\n" for i, ms in enumerate(times))
        done = subprocess.CompletedProcess([], status, "\n".join(answers), f"a warning\n{steps}peak 7\n")
        return table_follow.Measured(benchlib.Run(done, TOP / "no-such-log"), enough)

    def test_first_steps_do_not_count(self):
        run = self.measured([90, 80, 70, 3, 1, 2], ["a"])
        self.assertEqual((run.ms, run.least, run.most, run.steps, run.value("peak")), (2, 1, 3, 6, 7))

    def test_cut_off_before_any_counts(self):
        run = self.measured([90, 80], ["a"], 124)
        self.assertEqual((run.ms, run.steps), (80, 2))
        self.assertIsNone(self.measured([], [], 124).ms)

    def test_verdicts(self):
        enough = self.measured([1] * 4, ["a", "b", "c"])
        for answers, status, verdict in ((["a", "b"], 0, "equal"), (["a", "x", "c"], 0, "DIFFERENT in step 1"),
                                         (["a", "b"], 124, "cut off; 2 equal"), ([], 124, "cut off; none"), ([], 0, "NOTHING")):
            with self.subTest(verdict):
                self.assertEqual(self.measured([5], answers, status, enough).verdict(), verdict)

    def test_cells_of_a_run_without_a_step(self):
        enough = self.measured([1] * 4, ["a"])
        self.assertEqual(self.measured([], [], 124, enough).cells(), ("", "", "", "0", "0", "", "cut off; none"))


JOB = """
import sys
sys.path.insert(0, {gpu!r})
import job_times
with open({file!r}, "a") as file:
    print("imported", {name!r}, file=file, flush=True)
    job_times.wait_for_turn()
    print("works", {name!r}, file=file)
"""


class Turns(unittest.TestCase):
    """The next run starts while one runs, and does its work behind it."""

    def turns(self, folder, names):
        self.file = pathlib.Path(folder, "file")
        bench = table_programs.Bench.__new__(table_programs.Bench)
        bench.gpu = "none: these jobs use no device"
        codes = [JOB.format(gpu=str(TOP / "tests/gpu"), file=str(self.file), name=name) for name in names]
        return bench.in_turn([([sys.executable, "-c", code], {}) for code in codes], 60)

    def lines(self, word):
        return [line.split()[1] for line in self.file.read_text(encoding="utf-8").splitlines() if line.startswith(word)]

    def test_work_is_in_turn(self):
        with tempfile.TemporaryDirectory() as folder:
            for run, seen in zip(self.turns(folder, "abc"), ("a", "ab", "abc")):
                self.assertEqual((run.status, run.stderr), (0, ""))
                self.assertEqual("".join(self.lines("works")), seen)
            self.assertEqual(sorted(self.lines("imported")), ["a", "b", "c"])

    def test_who_is_not_wanted_any_more_ends(self):
        with tempfile.TemporaryDirectory() as folder:
            turns = self.turns(folder, "ab")
            next(turns)
            turns.close()
            self.assertEqual(self.lines("works"), ["a"])

    def test_a_run_that_takes_too_long_is_cut_off(self):
        bench = table_programs.Bench.__new__(table_programs.Bench)
        bench.gpu = "none"
        run = bench.run(["sh", "-c", "echo so far; exec sleep 60"], timeout=1)
        self.assertEqual((run.status, run.stdout), (124, "so far\n"))


class Programs(unittest.TestCase):
    def run_of(self, *times):
        text = "".join(f"step {i} {ms}\n" for i, ms in enumerate(times))
        return table_follow.Measured(benchlib.Run(subprocess.CompletedProcess([], 0, "a\n", text), TOP / "no-such-log"))

    def test_auto_is_judged_by_the_better_of_the_others(self):
        ways = {"off": self.run_of(1, 1, 1, 40), "auto": self.run_of(1, 1, 1, 44), "on": self.run_of(1, 1, 1, 80)}
        self.assertEqual(table_programs.against_best(ways), "1.10 of `off`")
        self.assertEqual(table_programs.against_best(ways | {"auto": self.run_of()}), "")

    def test_the_first_steps_are_told(self):
        self.assertEqual(table_programs.start_ratio(self.run_of(30, 90, 20, 10, 10)), "9.0")
        self.assertEqual(table_programs.start_ratio(self.run_of(30)), "")

    def test_each_job_knows_its_name(self):
        text = (TOP / "tests/gpu/program_job.py").read_text(encoding="utf-8")
        for name, (_, script, arguments, _) in table_programs.PROGRAMS.items():
            self.assertTrue((TOP / "tests/gpu" / script).exists(), name)
            self.assertTrue(script != "program_job.py" or f'    "{arguments[0]}": lambda: ' in text, name)

    def test_an_unknown_name(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--programs", "nothing"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench: --programs has no nothing: decode-1, ", done.stderr)


class Allocators(unittest.TestCase):
    def test_each_way_to_choose_one(self):
        for name in table_allocators.ALLOCATORS:
            for job, (script, *arguments) in table_allocators.JOBS.items():
                words, variables = table_allocators.command(name, job)
                self.assertEqual(words[-len(arguments) - 1:], [str(TOP / "tests/gpu" / script), *arguments])
                self.assertTrue((TOP / "tests/gpu" / script).exists())
                self.assertEqual(bool(variables), name in ("expandable_segments", "cudaMallocAsync"))
        self.assertEqual(table_allocators.command("spill run --torch", "training")[0][1:4], ["run", "--torch", "--"])
        self.assertIn("pluggable_job.py", table_allocators.command("pluggable", "training")[0][1])

    def test_the_native_one_is_the_measure(self):
        native, slower, none = (types.SimpleNamespace(ms=ms) for ms in (100, 121, None))
        self.assertEqual(table_allocators.ratio(native, native), "1.00x")
        self.assertEqual(table_allocators.ratio(slower, native), "1.21x, MORE THAN 1.2x")
        self.assertEqual(table_allocators.ratio(none, native), "no figure")
        self.assertEqual(table_allocators.ratio(native, none), "no figure")

    def test_an_unknown_job(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--allocators", "nothing"], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "bench: --allocators has no nothing: training, inference\n"))


def told_model(kind):
    """What llama_model.py tells the writer; the writer is a stand-in that keeps no weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.gguf")
        table_llama.make_model(str(STAND_IN / "gguf-py"), path, kind)
        return json.loads(path.read_text(encoding="utf-8"))


class ExpertsModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = told_model("experts")

    def test_a_token_reads_an_eighth_of_the_experts(self):
        keys = self.model["keys"]
        self.assertEqual((keys["expert_count"], keys["expert_used_count"], keys["block_count"]), (32, 4, 16))

    def test_experts_are_in_one_tensor_a_layer(self):
        tensors = self.model["tensors"]
        self.assertEqual(len(tensors), 3 + 16 * 10)
        self.assertEqual(tensors["blk.15.ffn_down_exps.weight"]["shape"], [32, 4096, 1024 // 32 * 34])
        self.assertEqual(tensors["blk.0.ffn_gate_inp.weight"], {"shape": [32, 4096], "bytes": 32 * 4096 * 4, "type": None,
                                                                "scales": None})
        on_device = sum(tensor["bytes"] for name, tensor in tensors.items() if name != "token_embd.weight")
        self.assertEqual(f"{on_device / (1 << 30):.2f}", "7.18")


class LlamaModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = told_model("dense")

    def test_it_is_the_7b_model_of_the_measurements(self):
        tensors = self.model["tensors"]
        self.assertEqual((self.model["architecture"], len(tensors)), ("llama", 3 + 32 * 9))
        on_device = sum(tensor["bytes"] for name, tensor in tensors.items() if name != "token_embd.weight")
        self.assertEqual(f"{on_device / (1 << 30):.2f}", "7.04")

    def test_shapes_are_in_blocks(self):
        tensors = self.model["tensors"]
        self.assertEqual(tensors["blk.31.ffn_down.weight"]["shape"], [4096, 14336 // 32 * 34])
        self.assertEqual(tensors["blk.0.attn_k.weight"]["shape"], [1024, 4096 // 32 * 34])
        self.assertEqual(tensors["output_norm.weight"], {"shape": [4096], "bytes": 16384, "type": None, "scales": None})

    def test_every_scale_is_small(self):
        """A random one can be infinite or no number, which all that follows would be too."""
        scales = {name: tensor["scales"] for name, tensor in self.model["tensors"].items() if tensor["type"] == 8}
        self.assertEqual(len(scales), 2 + 32 * 7)
        self.assertEqual({word for found in scales.values() for word in found}, {"ea0c"})


    def test_a_server_has_words(self):
        keys = self.model["keys"]
        words, kinds = keys["token_list"], keys["token_types"]
        self.assertEqual(len(set(words)), keys["vocab_size"])
        self.assertEqual((len(kinds), len(keys["token_scores"])), (len(words), len(words)))
        self.assertEqual((words[:3], words[3], words[258]), (["<unk>", "<s>", "</s>"], "<0x00>", "<0xFF>"))
        self.assertEqual((keys["bos_token_id"], keys["eos_token_id"]), (1, 2))


class LlamaSpeeds(unittest.TestCase):
    """What a run of llama-bench comes to."""

    def run_of(self, text, status=0):
        return benchlib.Run(subprocess.CompletedProcess([], status, text, ""), TOP / "no-such-log")

    def speeds(self, *tests, status=0):
        found = table_llama.Speeds()
        found.add(self.run_of(json.dumps([{"gpu_info": gpu, "samples_ts": samples} for gpu, samples in tests]), status))
        return found

    def test_repetitions_of_all_turns_count(self):
        found = self.speeds(("one", [3, 1]))
        found.add(self.run_of('[{"gpu_info": "one", "samples_ts": [8]}]'))
        self.assertEqual((str(found), found.median()), ("3.00 (1.00 to 8.00)", 3))

    def test_failures(self):
        good = ("one", [5])
        for found, said in ((self.speeds(good, status=1), "status 1"), (self.speeds(good, status=124), "not finished in 240 s"),
                            (self.speeds(("", [5])), "no GPU used"), (self.speeds(("one", [])), "no figures"),
                            (self.speeds(), "no figures")):
            with self.subTest(said):
                self.assertEqual((str(found), found.median()), (said, None))
        for text in ("", "[{", "[{}]", "7"):
            self.assertEqual(table_llama.failure(self.run_of(text)), "no figures")

    def test_a_failure_outweighs_earlier_figures(self):
        found = self.speeds(("one", [5]))
        found.add(self.run_of("", 1))
        self.assertEqual((str(found), found.median()), ("status 1", None))

    def test_the_better_of_the_others(self):
        llama = table_llama.Llama(None, "llama-bench", ["tg64"])
        found = llama.speeds["tg64"]
        for way, speed in (("enough memory", 100), ("off", 10), ("on", 4), ("auto", 9)):
            found[way].found = [speed]
        self.assertEqual(llama.against("tg64"), "0.90 of `off`")
        found["off"].failure = "status 1"
        self.assertEqual(llama.against("tg64"), "2.25 of `on`")
        found["on"].failure = "status 1"
        self.assertEqual(llama.against("tg64"), "")
        found["off"].failure, found["auto"].failure = None, "status 1"
        self.assertEqual(llama.against("tg64"), "")


class LlamaColumns(unittest.TestCase):
    def test_they_are_documented(self):
        lines = (TOP / "docs/measurements.md").read_text(encoding="utf-8").splitlines()
        at = lines.index("| column | arguments of llama-bench |") + 2
        rows = [f"| `{name}` | `{arguments}` |" for name, (_, _, arguments) in table_llama.COLUMNS.items()]
        self.assertEqual(lines[at:at + len(rows) + 1], [*rows, ""])


class LlamaTurn(unittest.TestCase):
    """The order of a turn, and what is asked of each run."""

    def test_pressure_is_there_for_all_but_the_resident_runs(self):
        seen, test = [], {"samples_ts": [5.0], "gpu_info": "one"}

        class Bench:
            def run(self, command, **options):
                seen.append((command[command.index("-fa") + 1], options.get("chain"), options.get("SPILL_MOVABLE_FOLLOW")))
                return benchlib.Run(subprocess.CompletedProcess(command, 0, json.dumps([test]), ""), TOP / "no-such-log")

        @contextlib.contextmanager
        def pressure():
            seen.append("memory is taken")
            yield None
            seen.append("and given back")

        llama = table_llama.Llama(Bench(), "llama-bench", ["tg64", "pp2048-deep"])
        with contextlib.redirect_stdout(None):
            llama.turn({"dense": "model"}, pressure)
        short = [(attention, benchlib.MOVING, way) for attention in ("1", "0") for way in ("off", "on", "auto")]
        self.assertEqual(seen, [("1", None, None), ("0", None, None), "memory is taken", *short, "and given back"])
        self.assertNotIn("managed", benchlib.MOVING)


class Ranks(unittest.TestCase):
    def test_in_small(self):
        """Whatever the figures are: each rank has a log, counts toward host.limit with the others, and is in the report."""
        command = [sys.executable, str(TOP / "scripts/bench"), "--ranks", "6", "--rounds", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\n6 ranks alive at once: 6 files, ", done.stdout)
        self.assertIn("; 0 of them count alone toward host.limit\n", done.stdout)
        if "no strace here" not in done.stdout:
            counted = [line for line in done.stdout.splitlines() if line.startswith("| rank 3, a folder that exists | ")]
            names = next(line for line in done.stdout.splitlines() if line.startswith("| calls more than "))
            self.assertEqual(len(counted), 1)
            self.assertNotIn("sync", names)

    def test_files_of_the_node_do_not_count(self):
        for line, local in (('1 openat(AT_FDCWD</root>, "/proc/self/maps", O_RDONLY) = 3', True), ("1 write(200</dev/shm/spill-0>, 1) = 1", True),
                            ('1 openat(AT_FDCWD</root>, "/home/proc/x", O_RDONLY) = 3</home/proc/x>', False)):
            self.assertEqual(bool(table_ranks.LOCAL.search(line)), local)


class InSmall(unittest.TestCase):
    def bench(self, *arguments):
        command = [sys.executable, str(TOP / "scripts/bench"), "--simulated", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("SIMULATED", done.stdout)
        return done.stdout

    def test_decode(self):
        text = self.bench("--decode")
        self.assertIn("out of memory", text)
        self.assertNotIn("WRONG", text)
        self.assertIn("times as fast", text)

    def test_moves(self):
        text = self.bench("--moves")
        self.assertIn("it moved 32 MiB, and 32 with chunks ahead", text)
        self.assertNotIn("nan", text)

    def test_gate(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--gate", "--rounds", "1"], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^\| cuLaunchKernel \| [^|]+ \| [^|]+ \| [^|]+ \|$")

    def test_decide(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--decide", "--rounds", "1"], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| 0 rules | 32 rules |", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\| [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\) \|$")

    def test_report(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--report", "3000", "--rounds", "1"], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for form in ("text", "--json", "--html"):
            self.assertRegex(done.stdout, rf"(?m)^\| {form} \| [\d.]+ \([\d.]+ to [\d.]+\) \|")
        self.assertRegex(done.stdout, r"the page has \d+ KiB")

    def test_replay(self):
        done = subprocess.run([sys.executable, str(TOP / "scripts/bench"), "--replay", "3000", "--rounds", "1"], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("wc -l", "report", "replay", "replay, a quarter too small"):
            self.assertRegex(done.stdout, rf"(?m)^\| {name} \| [\d.]+ \([\d.]+ to [\d.]+\) \|")

    def llama(self, *columns, program=STAND_IN / "llama-bench", gguf_py=STAND_IN / "gguf-py", rounds=1, fails=None):
        """Status, standard output and error, and the runs as the stand-in recorded them."""
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder, "record")
            environment = {**os.environ, "STAND_IN_RECORD": str(record), "SPILL_OOM_CHAIN": "managed", "TMPDIR": folder}
            if fails:
                environment["STAND_IN_FAILS"] = fails
            command = [sys.executable, str(TOP / "scripts/bench"), "--simulated", "--rounds", str(rounds), "--llama",
                       str(program), str(gguf_py), *columns]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=environment, check=False)
            runs = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir() if path != record], [])
        return done.returncode, done.stdout, done.stderr, runs

    def test_llama_makes_its_table(self):
        status, text, errors, runs = self.llama("pp512", "tg16-deep", rounds=2)
        self.assertEqual(status, 0, text + errors)
        self.assertIn("SIMULATED", text)
        for row in ("|  | prompt of 512 | 16 tokens at depth 16,384 |",
                    "| enough memory | 102.0 (100.0 to 104.0) | 100.5 (100.0 to 101.0) |",
                    "| `follow = off` | 12.00 (10.00 to 14.00) | 10.50 (10.00 to 11.00) |",
                    "| `follow = on` | 32.00 (30.00 to 34.00) | 30.50 (30.00 to 31.00) |",
                    "| `follow = auto` | 29.00 (27.00 to 31.00) | 27.50 (27.00 to 28.00) |",
                    "| `auto` against the better of `on` and `off` | 0.91 of `on` | 0.90 of `on` |"):
            self.assertIn(row + "\n", text)
        self.assertEqual(len(runs), 2 * 2 * 4)

    def test_llama_reaches_the_program(self):
        """The library, the policy and the arguments; nothing of the caller's own policy."""
        _, _, _, runs = self.llama("pp2048-deep")
        self.assertEqual([run["preloaded"] for run in runs], [False, True, True, True])
        self.assertEqual([run["variables"].get("SPILL_MOVABLE_FOLLOW") for run in runs], [None, "off", "on", "auto"])
        self.assertEqual([run["variables"].get("SPILL_OOM_CHAIN") for run in runs], [None] + [benchlib.MOVING] * 3)
        for run in runs:
            asked = {name: run["arguments"][name] for name in ("-ngl", "-fa", "-p", "-n", "-d", "-ub")}
            self.assertEqual(asked, {"-ngl": "99", "-fa": "0", "-p": "2048", "-n": "0", "-d": "16384", "-ub": "2048"})

    def test_llama_goes_on_after_a_failure(self):
        status, text, errors, runs = self.llama("tg64", "pp512", rounds=2, fails="tg64 on")
        self.assertEqual((status, errors), (1, "bench: not all runs have figures\n"), text)
        self.assertIn("  tg64, on: status 1\nmain: error: failed to load model\n", text)
        self.assertIn("| `follow = on` | status 1 | 32.00 (30.00 to 34.00) |\n", text)
        self.assertIn("| `auto` against the better of `on` and `off` | 2.55 of `off` | 0.91 of `on` |\n", text)
        self.assertEqual(len(runs), 2 * 2 * 4 - 1)

    def test_llama_says_what_it_lacks(self):
        for words, options, said in ((["pp1"], {}, "bench: --llama has no column pp1: pp512, tg64, "),
                                     ([], {"program": TOP / "meson.build"}, "meson.build is not a program\n"),
                                     ([], {"gguf_py": STAND_IN}, "is not llama.cpp's gguf-py: it holds no folder gguf\n")):
            with self.subTest(said):
                status, _, errors, runs = self.llama(*words, **options)
                self.assertEqual((status, runs), (1, []))
                self.assertIn(said, errors)


if __name__ == "__main__":
    unittest.main()

"""Who asked an allocator for memory: the log and the reports name the code behind it, or the Python function."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from harness import PROGRAMS, SPILL, Case, decided

# Another version of Python: tests/programs/pythons.
INTERPRETER = os.environ.get("INTERPRETER", "/usr/bin/python3")
PYTHON_JOB = pathlib.Path(__file__).parent / "python_job.py"
TORCH = PROGRAMS / "libc10_cuda.so"


def requesters(records):
    return [record.get("requester") for record in decided(records)]


class Behind(Case):
    vram = "20MiB"

    def report(self, *arguments):
        return subprocess.run([str(SPILL), "report", *arguments, str(self.log)], capture_output=True, text=True, check=False).stdout

    def test_the_code_behind_libraries_of_an_allocator(self):
        """Weights, cache, and what is refused, each by the function of the program. Memory that simply fits costs no look."""
        done = self.run_program([str(PROGRAMS / "requester"), str(PROGRAMS / "libggml-base.so")], SPILL_HOST_LIMIT="32MiB")
        self.assertEqual((done.stdout, done.returncode), ("0 0 2\n", 0), done.stderr)
        records = self.checked_records()
        first, second, cache = (record for record in records if record["kind"] == "alloc")
        oom, = (record for record in records if record["kind"] == "oom")
        self.assertNotIn("requester", first)
        for record in (second, cache, oom):
            self.assertRegex(record["caller"], r"^libggml-cuda\.so\+0x")
            self.assertRegex(record["requester"], r"^requester\+0x")
        self.assertNotEqual(second["requester"], cache["requester"])
        self.assertIn(second["requester"], [holder.get("requester") for holder in oom["holders"]])
        self.assertIn(cache["requester"], [group.get("requester") for group in oom["callers"]])
        self.assertRegex(done.stderr, r"out of memory: 64.00 MiB of device 0 asked by requester\+0x[0-9a-f]+ \(cuMemAlloc_v2\)")
        text = self.report()
        for function in ("load_weights", "make_cache"):
            self.assertRegex(text, rf"requester\+0x[0-9a-f]+ \({function}\)")
        self.assertRegex(text, r"64.00 MiB asked by requester\+0x[0-9a-f]+ \(make_cache\) with cuMemAlloc_v2")
        rows = {row["name"] for row in json.loads(self.report("--json"))["runs"][0]["by_caller"]}
        self.assertLessEqual({second["requester"], cache["requester"]}, rows)

    def test_the_log_for_people_names_both(self):
        self.run_program([str(PROGRAMS / "requester"), str(PROGRAMS / "libggml-base.so")])
        shown = subprocess.run([str(SPILL), "log", str(self.log)], capture_output=True, text=True, check=True).stdout
        self.assertRegex(shown, r"libggml-cuda\.so\+0x[0-9a-f]+ \(take_range\) for requester\+0x[0-9a-f]+ \(make_cache\)")
        for pattern in ("requester", "libggml-cuda.so"):
            self.assertIn("make_cache", subprocess.run([str(SPILL), "log", "--caller", pattern, "--kind", "alloc", str(self.log)],
                                                       capture_output=True, text=True, check=True).stdout)

    def test_an_allocator_of_a_python_framework_without_python(self):
        done = self.run_program([str(PROGRAMS / "retrier"), str(TORCH), *(f"take:{name}:6" for name in "abcd")])
        self.assertEqual(done.returncode, 0, done.stderr)
        known = {requester for requester in requesters(self.checked_records()) if requester}
        self.assertEqual(len(known), 1)
        self.assertRegex(known.pop(), r"^retrier\+0x")

    def test_a_program_without_an_allocator(self):
        self.run_program([str(PROGRAMS / "retrier"), str(PROGRAMS / "libplain_retrier.so"), *(f"take:{name}:6" for name in "abcd")])
        records = decided(self.checked_records())
        self.assertGreater(len(records), 3)
        self.assertEqual([record for record in records if "requester" in record], [])

    def test_without_a_log_nobody_is_looked_for(self):
        done = self.run_program([str(PROGRAMS / "requester"), str(PROGRAMS / "libggml-base.so")], SPILL_LOG="off")
        self.assertEqual(done.stdout, "0 0 2\n" if "out of memory" in done.stderr else "0 0 0\n")


class Python(Case):
    vram = "16MiB"

    def run_job(self, job=PYTHON_JOB):
        runtime, = (path for folder in os.environ["SIM_PATH"].split(":")
                    for path in pathlib.Path(folder).glob("libcudart.so.13"))
        done = self.run_program([INTERPRETER, str(job), str(runtime)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(re.findall(r"\d+", done.stdout)), {"0"})
        return requesters(self.checked_records())

    def test_functions(self):
        """Of the innermost function, whether a method, a generator or in a thread; the first blocks fitted."""
        found = self.run_job()
        self.assertEqual(len(found), 6)
        self.assertEqual([name for name in found if name], ["python_job.py:Model.take"] * (6 - found.count(None)))
        self.assertLess(found.count(None), 4)

    def test_functions_of_packages_are_passed_over(self):
        """Innermost first: a framework, another package, the program."""
        frames = [("lib/python3.11/site-packages/torch/nn/modules/linear.py", "forward"),
                  ("lib/python3.11/site-packages/someone/layers.py", "apply"), ("train.py", "step")]
        for outer, expected in ((3, "train.py:step"), (2, "layers.py:apply"), (1, "linear.py:forward")):
            text = "import ctypes, sys\nruntime = ctypes.CDLL(sys.argv[1])\ncalls = []\n"
            for path, name in frames[:outer]:
                text += (f"scope = dict(calls=calls, ctypes=ctypes, runtime=runtime)\n"
                         f"exec(compile('def {name}():\\n if calls: return calls.pop()()\\n block = ctypes.c_void_p()\\n"
                         f" return runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(6 << 20))', {str(self.folder / path)!r}, 'exec'), scope)\n"
                         f"calls.append(scope[{name!r}])\n")
            text += "kept = list(calls)\nfor i in range(3):\n    calls[:] = kept\n    result = calls.pop()()\n    print(result)\n"
            job = self.folder / "lib/python3.11/site-packages/torch/start.py"
            job.parent.mkdir(parents=True, exist_ok=True)
            job.write_text(text)
            self.log.unlink(missing_ok=True)
            with self.subTest(expected):
                self.assertIn(expected, self.run_job(job=job))


if __name__ == "__main__":
    unittest.main()

"""meminfo.report for NVML: what a program that works with CUDA is told by nvmlDeviceGetMemoryInfo and its second form."""
import functools
import os
import pathlib
import shutil
import unittest

from harness import MIB, PROGRAMS, Case

HERE = pathlib.Path(__file__).resolve().parent
# By the loader, by dlsym, and by ctypes as pynvml does it.
WAYS = {"link": [str(PROGRAMS / "nvml_link")], "dlsym": [str(PROGRAMS / "nvml_dlsym")],
        "ctypes": ["python3", str(HERE / "nvml_job.py")]}
LIMIT = {"SPILL_MEMINFO_REPORT": "limit"}
SPILL = {"SPILL_MEMINFO_REPORT": "spill", "SPILL_HOST_LIMIT": "100MiB", "SPILL_HOST_RESERVE": "0"}
LIMITS = {"SPILL_DEVICE_LIMIT": "40MiB", "SPILL_DEVICE_1_LIMIT": "24MiB"}


def each(test):
    """The test by each way."""
    @functools.wraps(test)
    def of_each(self):
        for way in WAYS:
            with self.subTest(way):
                test(self, way)
    return of_each


class Nvml(Case):
    movable = "off"

    def ask(self, way, words, *, preload=True, **variables):
        """The program's lines, each split."""
        self.log.unlink(missing_ok=True)
        command = WAYS.get(way) or [str(PROGRAMS / way)]
        done = self.run_program([*command, *words.split()], preload=preload,
                                **{"SPILL_SIM_DEVICES": "2", "SPILL_LOG_STDERR": "off", **variables})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return [line.split() for line in done.stdout.splitlines()]

    def told(self, lines):
        """(free, total) in MiB by each answer of NVML and of the driver; every sum of NVML's is checked."""
        answers = []
        for word, result, *figures in lines:
            figures = [int(figure) for figure in figures]
            if word.startswith(("first", "child")):
                total, free, used = figures
                self.assertEqual(total, free + used)
            elif word.startswith("second"):
                version, total, reserved, free, used = figures
                self.assertEqual((version, total), (40 | 2 << 24, reserved + free + used))
            elif word == "cuda":
                free, total = figures
            else:
                continue
            self.assertEqual(result, "0")
            answers.append((free / MIB, total / MIB))
        return answers


class Unchanged(Nvml):
    """NVML's own answers, with every argument, and no call more."""

    WORDS = "init first:0 device:0 first:0 second:0 alloc:8 first:0 second:0 first:1 second:1 later:0 odd child:0"
    SAME = ({}, LIMITS, {"SPILL_MEMINFO_REPORT": "honest", **LIMITS}, LIMIT, {**LIMIT, "SPILL_DEVICE_LIMIT": "64GiB"},
            {**SPILL, "SPILL_OOM_CHAIN": ""}, {**SPILL, **LIMITS, "SPILL_MODE": "observe"}, {**LIMIT, **LIMITS, "SPILL_MODE": "observe"},
            {**LIMIT, **LIMITS, "SPILL_MODE": "off"}, {**LIMIT, **LIMITS, "SPILL": "0"})

    @each
    def test_answers(self, way):
        alone = self.ask(way, self.WORDS, preload=False, SPILL_SIM_RESERVED="6MiB")
        self.assertEqual(self.told(alone), [(64, 70)] * 3 + [(56, 70)] * 2 + [(64, 70)] * 2 + [(56, 70)])
        self.assertEqual([line[1:] for line in alone if line[0] in ("later:0", "odd")],
                         [["13", str((40 | 2 << 24) + 1), "77", "77", "77", "77"], ["2", "2", "2", "77"]])
        for variables in self.SAME:
            self.assertEqual(self.ask(way, self.WORDS, SPILL_SIM_RESERVED="6MiB", **variables), alone, variables)

    @each
    def test_calls(self, way):
        """What is not to be changed asks the vendor nothing: also of a device that nobody limits, before CUDA is in use."""
        calls = []
        words = "init first:0 second:1 device:0 first:0 second:1"
        for preload, variables in ((False, {}), (True, {}), (True, LIMITS), (True, {**LIMIT, **LIMITS, "SPILL_MODE": "observe"})):
            trace = self.folder / "trace"
            trace.unlink(missing_ok=True)
            self.ask(way, words, preload=preload, SPILL_SIM_TRACE=trace, **variables)
            calls.append([call for call in trace.read_text(encoding="utf-8").split() if "GetProcAddress" not in call])
            self.assertFalse(self.log.exists(), "a question opens no log")
            self.assertEqual(calls[-1], calls[0], variables)
        self.assertGreater(len(calls[0]), 8)

    def test_without_cuda_in_use(self):
        """Loaded, and initialised even: as long as nothing is done with it, NVML speaks for itself, and nothing of ours begins."""
        for variables in (LIMIT, SPILL):
            trace = self.folder / "trace"
            lines = self.ask("link", "first:0 init first:0 second:1", SPILL_SIM_TRACE=trace, SPILL_POLICY="/nowhere", SPILL_NONSENSE="1",
                             **variables, **LIMITS)
            self.assertEqual(self.told(lines), [(64, 64)] * 3)
            self.assertEqual([call for call in trace.read_text(encoding="utf-8").split() if call.startswith("cu")], ["cuInit"])
            trace.unlink()

    @each
    def test_memory_that_is_the_host_s(self, way):
        """NVML does not support the question there, and no figure of ours takes the place of that answer."""
        words = "init device:0 first:0 second:0 alloc:8 first:1 child:0"
        for caps in "integrated", "integrated, coherent":
            alone = self.ask(way, words, preload=False, SPILL_SIM_CAPS=caps)
            self.assertEqual([line[:2] for line in alone if line[0][:5] in ("first", "secon", "child")],
                             [["first:0", "3"], ["second:0", "3"], ["first:1", "3"], ["child:0", "3"]])
            for variables in ({}, {**LIMIT, **LIMITS}, {**SPILL, **LIMITS}):
                self.assertEqual(self.ask(way, words, SPILL_SIM_CAPS=caps, **variables), alone, variables)

    def test_with_cuda_looked_at(self):
        """A runtime that has asked for its functions has not begun to use a device."""
        lines = self.ask("link", "init look first:0 second:0 device:0 first:0", **LIMIT, **LIMITS)
        self.assertEqual(lines[1], ["look", "0"])
        self.assertEqual(self.told(lines), [(64, 64)] * 2 + [(40, 40)])

    def test_with_hip(self):
        """Its devices are none of NVML's, whatever their numbers; and CUDA is not looked for."""
        words = "device:0 alloc:8 cuda first:0 second:1"
        alone = self.ask("nvml_hip", words, preload=False)
        for variables in (LIMIT, SPILL):
            lines = self.ask("nvml_hip", words, **variables, **LIMITS)
            self.assertEqual(lines[3:], alone[3:])
            self.assertNotEqual(lines[2], alone[2])

    def test_a_device_that_cannot_be_told(self):
        words = "device:0 alloc:8 first:0 second:0"
        alone = self.ask("link", words, preload=False)
        for fails in ("nvmlDeviceGetUUID:1+", "cuDeviceGetCount:1+"):
            self.assertEqual(self.ask("link", words, SPILL_SIM_FAIL=fails, **LIMIT, **LIMITS), alone, fails)


class Limit(Nvml):
    @each
    def test_of_each_device(self, way):
        """As the driver tells it, of whichever device NVML is asked about, current or not."""
        words = "device:0 cuda first:0 second:0 alloc:8 cuda first:0 second:0 first:1 device:1 alloc:20 cuda first:1 second:1 first:0"
        expected = [(40, 40)] * 3 + [(32, 40)] * 3 + [(24, 24)] + [(4, 24)] * 3 + [(32, 40)]
        self.assertEqual(self.told(self.ask(way, words, **LIMIT, **LIMITS)), expected)
        half = [(free - 8, 32) if total == 40 else (free, total) for free, total in expected]
        self.assertEqual(self.told(self.ask(way, words, SPILL_DEVICE_LIMIT="50%", SPILL_DEVICE_1_LIMIT="24MiB", **LIMIT)), half)
        self.assertTrue(self.log.exists())

    @each
    def test_what_is_reserved(self, way):
        """It is among what is not free, as far as that goes."""
        lines = self.ask(way, "device:0 second:0 alloc:4 second:0 alloc:16 first:0 second:0", SPILL_SIM_RESERVED="6MiB", **LIMIT, **LIMITS)
        self.assertEqual(self.told(lines), [(40, 40), (36, 40), (20, 40), (20, 40)])
        second = [[int(figure) / MIB for figure in line[4:]] for line in lines if line[0] == "second:0"]
        self.assertEqual(second, [[0, 40, 0], [4, 36, 0], [6, 20, 14]])  # reserved, free, used

    def test_others_hold_more_than_the_limit_leaves(self):
        lines = self.ask("link", "device:0 first:0 alloc:8 cuda first:0", SPILL_SIM_CONTEXT="16MiB", SPILL_DEVICE_LIMIT="60MiB", **LIMIT)
        self.assertEqual(self.told(lines), [(48, 60), (40, 60), (40, 60)])

    @each
    def test_nvml_numbers_devices_by_itself(self, way):
        words = "device:0 alloc:8 cuda first:1 second:1 first:0 second:0 device:1 cuda"
        lines = self.ask(way, words, CUDA_VISIBLE_DEVICES="1,0", **LIMIT, **LIMITS)
        self.assertEqual(self.told(lines), [(32, 40)] * 3 + [(24, 24)] * 3)
        # A device that the process does not see is none of its own.
        lines = self.ask(way, "device:0 alloc:8 first:1 second:1 first:0 second:0", CUDA_VISIBLE_DEVICES="1", **LIMIT, **LIMITS)
        self.assertEqual(self.told(lines), [(32, 40)] * 2 + [(64, 64)] * 2)

    @each
    def test_odd_questions(self, way):
        words = "device:0 alloc:8 later:0 odd"
        self.assertEqual(self.ask(way, words, **LIMIT, **LIMITS), self.ask(way, words, preload=False))

    def test_a_later_form(self):
        """One that a newer NVML answers and libspill does not know."""
        words = "device:0 alloc:8 later:0"
        lines = self.ask("link", words, SPILL_SIM_NVML_LATER="1", **LIMIT, **LIMITS)
        self.assertEqual(lines, self.ask("link", words, SPILL_SIM_NVML_LATER="1", preload=False))
        self.assertEqual(lines[2][1], "0")

    @each
    def test_before_and_after_cuda(self, way):
        lines = self.ask(way, "first:0 init first:0 device:0 first:0 child:0", **LIMIT, **LIMITS)
        # A child has no CUDA, so NVML speaks for itself there.
        self.assertEqual(self.told(lines), [(64, 64), (64, 64), (40, 40), (64, 64)])

    def test_the_device_is_asked_of_the_nvml_that_gave_its_handle(self):
        """A second copy in the process has handles of its own."""
        library, = [path for folder in self.environment_path() if (path := folder / "libnvidia-ml.so.1").exists()]
        copy = self.folder / "libnvidia-ml.so.0"
        shutil.copy(library, copy)
        lines = self.ask("ctypes", f"copy={copy} device:0 alloc:8 first:0 second:0", **LIMIT, **LIMITS)
        self.assertEqual(self.told(lines), [(32, 40)] * 2)

    def environment_path(self):
        return [pathlib.Path(folder) for folder in os.environ["SIM_PATH"].split(":")]


class Spill(Nvml):
    @each
    def test_with_the_host(self, way):
        words = "device:0 cuda first:0 second:0 alloc:8 alloc:48 cuda first:0 second:0 first:1"
        lines = self.ask(way, words, SPILL_DEVICE_RESERVE="0", **SPILL, **LIMITS)
        self.assertEqual(self.told(lines), [(90, 90)] * 3 + [(42, 90)] * 3 + [(66, 74)])
        lines = self.ask(way, "device:0 alloc:8 first:0 second:0", **SPILL)
        self.assertEqual(self.told(lines), [(106, 114)] * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)

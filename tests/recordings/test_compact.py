"""compact.py and gap.py, on recordings whose period, times and sides are known. usage: test_compact.py COMPACT.PY"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

COMPACT = sys.argv.pop()
PERIODS = 6
# Of a period: copy or kernel, its name, its chunks (a key, units of 2 MiB), ns on the device, ns more in place.
PERIOD = [("1", 1, ["10:32"], 5000, 0), ("0", 2, ["10:32", "30:16"], 200000, 800000), ("0", 3, ["30:16"], 70000, 0)]
ON_HOST = "10:32"


def recording(*, in_place, sites=0, unsure=0, more_us=0, moving=False, ranges=()):
    """The lines of a run. `sites` is added to the names of code; `unsure`: the first periods name another chunk, too; `more_us`: a
    period is longer than what was measured in it; `moving`: a buffer is elsewhere in each period; `ranges`: of each launch."""
    lines, number, time = ["spill-recording 2" if ranges else "spill-recording 1"], 0, 0
    for period in range(PERIODS + unsure):
        # The program waits for the rest of the work.
        time += sum(device_ns + in_place * in_place_ns for *_, device_ns, in_place_ns in PERIOD) // 1000 - 30 + more_us
        for once, site, chunks, device_ns, more_ns in PERIOD:
            number += 1
            time += 10
            chunks = chunks + (["40:1"] if period < unsure and once == "0" else [])
            chunks = [f"{0x30 + 16 * period:x}:16" if moving and chunk == "30:16" else chunk for chunk in chunks]
            host = in_place and ON_HOST in chunks
            mib = 64 if host else 0
            named = [chunk + "h" if host and chunk == ON_HOST else chunk for chunk in chunks]
            lines.append(f"L {number} {time} {site + sites} ab {once} 1 {len(chunks)} {mib} {' '.join(named)}" + " ".join([" |"] * bool(ranges) + [*ranges]))
            lines.append(f"T {number} {mib} {device_ns + (more_ns if host else 0)}")
    return "\n".join(lines) + "\n"


class Compact(unittest.TestCase):
    def compact(self, *recordings, status=0, options=()):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, text in enumerate(recordings):
                paths.append(pathlib.Path(folder) / f"{number}.rec")
                paths[-1].write_text(text, encoding="ascii")
            done = subprocess.run([sys.executable, COMPACT, "--program", "a program", "--repeat", "7", *options, *paths],
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode != 0, status != 0, done.stderr)
        return done.stdout.splitlines()

    HEAD = ["program a program", "chunks 64h 32"]
    LINES = ["period 7", "W", "C 5000 0", "L 2 200000 1 0:800000 1:400000", "L 3 70000 1 1:576000"]

    def test_two_runs(self):
        """The time in place is that of one run, the time on the device that of the other, whose code has other names."""
        lines = self.compact(recording(in_place=True), recording(in_place=False, sites=100))
        self.assertEqual(lines, self.HEAD + self.LINES)

    def test_the_last_recording_of_a_file_counts(self):
        once = self.compact(recording(in_place=True), recording(in_place=False))
        self.assertEqual(self.compact(recording(in_place=False, unsure=3) + recording(in_place=True), recording(in_place=False)), once)

    def test_the_begin_is_kept(self):
        """Before the chunks are known, launches name more. Such chunks cost nothing."""
        lines = self.compact(recording(in_place=True, unsure=2), recording(in_place=False))
        self.assertEqual(lines, self.HEAD + 2 * ["period 1", *self.LINES[1:]] + self.LINES)

    def test_costs_in_place_are_as_long_as_the_period(self):
        lines = self.compact(recording(in_place=True, more_us=400), recording(in_place=False))
        self.assertEqual(lines[5], "L 2 200000 1 0:1200000 1:600000")

    def test_no_launch_is_shorter_than_the_shortest_that_was_measured(self):
        """The kernel without a time on the device has a tenth of its 50 us in place, but the copy takes 6 us. What reads for no longer costs nothing."""
        in_place = recording(in_place=True).replace(" 1000000\n", " 50000\n").replace(" 5000\n", " 6000\n").replace(" 70000\n", " 6000\n")
        on_device = "".join(line for line in recording(in_place=False).replace(" 5000\n", " 6000\n").replace(" 70000\n", " 6000\n").splitlines(True)
                            if not line.endswith(" 200000\n"))
        lines = self.compact(in_place, on_device)
        self.assertEqual([line for line in lines if line[:3] in ("L 2", "L 3")][0].split()[:3], ["L", "2", "6000"])
        self.assertEqual([line for line in lines if line.startswith("L 3")], ["L 3 6000 1 1"])

    def test_buffers_that_move(self):
        """The last periods are kept, each with its own chunks. Those that were never on the host cost as much as others there."""
        runs = (recording(in_place=True, moving=True), recording(in_place=False, moving=True))
        self.compact(*runs, status=1)
        lines = self.compact(*runs, options=("--moving", "3"))
        self.assertEqual([line for line in lines if line.startswith("L 2")],
                         [f"L 2 200000 1 0:800000 {chunk}:400000" for chunk in (4, 5, 6)])
        self.assertEqual([line for line in lines if line.startswith("period")], ["period 1", "period 1", "period 7"])

    def test_ranges(self):
        """From the begin of a chunk on. What begins in no chunk is left out."""
        runs = [recording(in_place=in_place, ranges=("10:1", "2f:3", "31:5", "f:2", "40:1")) for in_place in (True, False)]
        lines = self.compact(*runs)
        self.assertEqual(lines, self.HEAD + [line + " | 0+0:1 0+31:3 1+1:5" if line[0] in "LC" else line for line in self.LINES])

    def test_another_program_is_refused(self):
        other = recording(in_place=False).replace(" ab 1 ", " ab 0 ")
        self.assertEqual(self.compact(recording(in_place=True), other, status=1), [])

    def test_what_does_not_repeat_is_refused(self):
        lines = recording(in_place=True).splitlines(keepends=True)
        self.compact("".join(lines[:5]), status=1)


class Gap(unittest.TestCase):
    """The parts of a period with auto: 275 us on the device, 800 more if its memory is on the host, and what exchanges take."""

    def parts(self, auto):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("off", "on", "auto")]
            for path, text in zip(paths, (recording(in_place=True), recording(in_place=False), auto)):
                path.write_text(text, encoding="ascii")
            gap = pathlib.Path(COMPACT).with_name("gap.py")
            done = subprocess.run([sys.executable, gap, "true", *paths], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(figure) for figure in re.findall(r"\d+\.\d", done.stdout.splitlines()[0])]

    def test_on_the_device(self):
        whole, device, in_place, moved, rest = self.parts(recording(in_place=False))
        self.assertEqual((whole, device, in_place, moved, rest), (0.3, 0.3, 0.0, 0.0, 0.0))

    def test_in_place(self):
        whole, device, in_place, moved, rest = self.parts(recording(in_place=True))
        self.assertEqual((whole, device, in_place, moved, rest), (1.1, 0.3, 0.8, 0.0, 0.0))

    def test_an_exchange_and_a_wait(self):
        """An exchange of 2 ms before the second launch of each period of 3.3 ms. One that brought nothing took no time."""
        lines = []
        for line in recording(in_place=False, more_us=3000).splitlines():
            words = line.split()
            if words[0] == "L" and words[3] == "2":
                lines += [f"X {words[2]} 1 90 29 64 64 64 10 2000 0", f"X {words[2]} 1 90 29 64 64 0 10 500 0"]
            lines.append(line)
        whole, device, in_place, moved, rest = self.parts("\n".join(lines) + "\n")
        self.assertEqual((whole, device, in_place, moved, rest), (3.3, 0.3, 0.0, 2.0, 1.0))


unittest.main()

#!/usr/bin/env python3
"""Says where the time of a period goes, and what it could be at best (docs/recordings.md).

usage: gap.py TEST_RECORDINGS OFF.rec ON.rec AUTO.rec

OFF, ON and AUTO are recordings of one program with these values of movable.follow. TEST_RECORDINGS is the test of that name in
build/tests/unit: it prints the bounds.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

import compact


def exchanges(path):
    """(time, microseconds of the moves) of each exchange."""
    times = []
    for letter, words in compact.lines(path):
        if letter == "spill-recording":
            times = []
        elif letter == "X" and int(words[6]):
            times.append((int(words[0]), int(words[8])))
    return times


def parts(periods, times, moves):
    """Milliseconds of each later period: all of it, on the device, in place, in exchanges."""
    table = []
    for period, after in list(zip(periods, periods[1:]))[len(periods) // 2:]:
        begin, end = period[0].time, after[0].time
        in_place = sum(times.cost(place, key) for place, launch in enumerate(period) for key in launch.host)
        moved = sum(us for time, us in moves if begin <= time < end)
        table.append(((end - begin) / 1e3, sum(times.device) / 1e6, in_place / 1e6, moved / 1e3))
    return [statistics.median(column) for column in zip(*table)]


def bounds(program, files):
    """The line of test_recordings for the compact recording of the same files."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as recording:
        subprocess.run([sys.executable, compact.__file__, *files], stdout=recording, stderr=subprocess.DEVNULL, check=True)
        done = subprocess.run([program, recording.name, "0", "100"], capture_output=True, text=True, check=False)
    return [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("ms a period")]


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    program, *names = sys.argv[1:]
    files = [pathlib.Path(name) for name in names]
    phase = compact.Phase(files, 0, sys.maxsize)
    table = compact.chunk_table([period for run in phase.runs for period in run])
    times = compact.Times(phase.runs, table, compact.SHARE)
    if len(phase.runs[2]) < 3:
        sys.exit(f"{files[2]} has too few periods")
    whole, device, in_place, moved = parts(phase.runs[2], times, exchanges(files[2]))
    rest = max(whole - device - in_place - moved, 0)
    print(f"measured with auto: {whole:.1f} ms a period; on the device {device:.1f}, reads in place {in_place:.1f}, "
          f"exchanges {moved:.1f}, the rest (the device waits, or wrong estimates) {rest:.1f}")
    for line in bounds(program, names):
        print(f"replayed: {line}")


if __name__ == "__main__":
    main()

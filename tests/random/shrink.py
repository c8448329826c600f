"""Makes a program shorter that still fails in the same way: shrink.py PROGRAM [SECONDS]. Writes PROGRAM.short."""
import pathlib
import sys
import tempfile
import time

import judge

TRIES = 3  # threads race: where a program does not always fail, one that fails once in three runs does


class Shrinker:
    def __init__(self, header, variant, kind, seconds, tries):
        self.header, self.variant, self.kind = header, variant, kind
        self.end = time.monotonic() + seconds
        self.runs, self.last, self.tries = 0, None, tries

    def fails(self, lines):
        """The program fails in the same way in one of a few runs."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write(self.header + "".join(lines))
            file.flush()
            for _ in range(self.tries):
                if time.monotonic() > self.end:
                    return False
                self.runs += 1
                verdict, *_ = judge.try_program(file.name, self.variant)
                if verdict and verdict.kind == self.kind:
                    self.last = verdict
                    return True
        return False

    def without_threads(self, lines):
        """Drops whole threads, and gives the lines of two to one."""
        for thread in sorted({line.split()[0] for line in lines}):
            fewer = [line for line in lines if line.split()[0] != thread]
            if fewer and self.fails(fewer):
                lines = fewer
        return lines

    def without_lines(self, lines):
        """Drops runs of lines, half of the program first, then shorter ones (delta debugging)."""
        size = max(1, len(lines) // 2)
        while True:
            at, dropped = max(0, len(lines) - size), False
            while at >= 0 and lines:  # from the end: what comes late is seldom the cause
                fewer = lines[:at] + lines[at + size:]
                if fewer and len(fewer) < len(lines) and self.fails(fewer):
                    lines, dropped = fewer, True
                at -= size
                if -size < at < 0:
                    at = 0
            if time.monotonic() > self.end or (size == 1 and not dropped):
                return lines
            size = max(1, size // 2)

    def with_small_numbers(self, lines):
        """Each argument becomes 0 where that does not matter."""
        for index in range(len(lines)):
            words = lines[index].split()
            for at in range(2, len(words)):
                if words[at] == "0":
                    continue
                other = lines[:]
                other[index] = " ".join(words[:at] + ["0"] + words[at + 1:]) + "\n"
                if self.fails(other):
                    lines, words = other, other[index].split()
        return lines

    def shrink(self, lines):
        lines = self.without_threads(lines)
        lines = self.without_lines(lines)
        lines = self.without_threads(lines)
        return self.with_small_numbers(lines) if len(lines) < 60 else lines


def first_failure(path):
    """A verdict of one of a few runs, or None."""
    for _ in range(TRIES):
        verdict, *_ = judge.try_program(path, judge.variant_of(path))
        if verdict:
            return verdict
    return None


def shrink_file(path, kind, seconds):
    """The shorter program, its verdict and the number of runs it took. pre: `path` failed in the way of `kind`."""
    header, *lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith("#")]
    variant = judge.variant_of(path)
    verdicts = [judge.try_program(path, variant)[0] for _ in range(TRIES)]
    always = all(verdict and verdict.kind == kind for verdict in verdicts)
    shrinker = Shrinker(header, variant, kind, seconds, 1 if always else TRIES)
    short = shrinker.shrink(lines)
    target = pathlib.Path(f"{path}.short")
    target.write_text(header + "".join(short), encoding="utf-8")
    return target, len(short), shrinker


def main(path, seconds=600.0):
    verdict = first_failure(path)
    if not verdict:
        print("it does not fail")
        return 2
    target, count, shrinker = shrink_file(path, verdict.kind, float(seconds))
    print(f"{target}: {count} lines after {shrinker.runs} runs; {(shrinker.last or verdict).text}")
    if count < 100:
        print(target.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

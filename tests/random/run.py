"""Draws random programs until the time is up, compares each with a run that has memory enough, and shrinks those that fail.

usage: run.py [--minutes N] [--seed N] [--jobs N] [--lines N] [--long N] [--variant NAME]… [--folder FOLDER]

--long: lines of one program beside the others, 400,000 if there are 20 minutes or more (a million calls).
Programs that fail, and the short ones made of them (.short), stay in FOLDER. judge.py runs one again, shrink.py goes on shrinking.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import time

import judge
import shrink

THREADS = 8
SHRINK_S = 240


class Search:
    def __init__(self, options):
        self.options, self.begin = options, time.monotonic()
        self.end = self.begin + 60 * options.minutes
        self.folder = pathlib.Path(options.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.counts, self.bad = collections.Counter(), []

    def one(self, name, seed, lines):
        path = self.folder / f"{name.replace(' ', '-')}-{seed}.txt"
        judge.draw(name, seed, lines, THREADS, path)
        verdict, plain, spilled = judge.try_program(path, judge.VARIANTS[name])
        if not verdict:
            path.unlink()
        return path, verdict, plain, spilled

    def count(self, path, verdict, plain, spilled):
        self.counts.update(programs=1, calls=plain.calls + spilled.calls, results=len(plain.lines))
        self.counts["longest"] = max(self.counts["longest"], spilled.calls)
        for name in ("spills", "demotions", "promotions"):
            self.counts[name] += spilled.exit.get(name, 0)
        if verdict:
            self.bad.append((path, verdict))
            print(f"{path}: {verdict.text}", flush=True)

    def plans(self):
        names = self.options.variant or list(judge.VARIANTS)
        if self.options.long:
            yield names[0], self.options.seed, self.options.long
        seed = self.options.seed
        while True:
            for name in names:
                seed += 1
                yield name, seed, self.options.lines

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            waiting = set()
            for plan in self.plans():
                if time.monotonic() >= self.end:
                    break
                waiting.add(pool.submit(self.one, *plan))
                if len(waiting) > self.options.jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for one in done:
                        self.count(*one.result())
            for one in waiting:
                self.count(*one.result())

    def shrink(self):
        """One of each kind: several programs that fail in the same way have one cause, mostly."""
        kinds = {verdict.kind: (path, verdict) for path, verdict in reversed(self.bad)}
        for path, verdict in kinds.values():
            target, lines, shrinker = shrink.shrink_file(path, verdict.kind, SHRINK_S)
            print(f"{target}: {lines} lines, after {shrinker.runs} runs: {(shrinker.last or verdict).text}")
            if lines < 60:
                print(target.read_text(encoding="utf-8"))

    def tell(self):
        seconds = time.monotonic() - self.begin
        print(f"seed {self.options.seed}: {self.counts['programs']} programs, {self.counts['calls']} calls, {self.counts['results']} results "
              f"compared, in {seconds:.0f} s; the longest run made {self.counts['longest']} calls; under libspill {self.counts['spills']} spills, "
              f"{self.counts['demotions']} demotions, {self.counts['promotions']} promotions; {len(self.bad)} programs failed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")) * 1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--long", type=int)
    parser.add_argument("--variant", action="append", choices=judge.VARIANTS)
    parser.add_argument("--folder", default=judge.RANDOM / "failed")
    options = parser.parse_args()
    if options.long is None:
        options.long = 400000 if options.minutes >= 20 else 0
    search = Search(options)
    search.run()
    search.tell()
    search.shrink()
    return 1 if search.bad else 0


if __name__ == "__main__":
    sys.exit(main())

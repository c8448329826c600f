"""Disturbs the programs until the time is up: each call alone, then pairs, and calls that fail from one on.

usage: run.py [--minutes N] [--seed N] [--from ROUND,CALL] [--jobs N] [--program NAME]… [FAULT,FAULT…]

Single faults come in rounds: each first call with each error; each later call with one error, all second calls before all
third ones; and the other errors of later calls. Within a number they come by chance. --from goes on where another run stopped, by its
last line. A FAULT (as in faults.h) is run alone, and the run is shown.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import sys
import tempfile
import time

import faults
import programs

# Of the time, for single faults. If they need less, the rest is for the others.
SINGLES = 0.75
# Every call from a place up to this one; beyond, where a program polls, each further half as much.
EVERY = 24


def numbers(count):
    """Which calls from a place that makes so many."""
    number = 0
    while number < count:
        number = number + 1 if number < EVERY else number * 3 // 2
        if number <= count:
            yield number


class Target:
    """A program, and what its runs without a fault are like."""

    def __init__(self, program, stubs):
        self.program, self.stubs = program, stubs
        self.usual = faults.usual(program, stubs)
        self.places = [place for place in self.usual.report.places if place.name not in faults.NEVER_FAIL]

    def errors(self, place):
        return faults.errors_of(place, self.usual.report)

    def singles(self):
        """All single faults, as ((round, number), fault)."""
        for place in self.places:
            errors = self.errors(place)
            for number, (index, error) in itertools.product(numbers(place.count), enumerate(errors)):
                late = 0 if number == 1 else 1 if index == number % len(errors) else 2
                yield (late, number), faults.Fault(place.side, place.name, place.offset, number, error)

    def one(self, chance, on=False):
        """Any fault: a place, and early numbers as often as late ones."""
        place = chance.choice(self.places)
        number = int(2 ** chance.uniform(0, place.count.bit_length() - 1))
        return faults.Fault(place.side, place.name, place.offset, number, chance.choice(self.errors(place)), on)

    def from_one_on(self, chance):
        """All calls of a place, of a function or of a side fail from one on."""
        fault = self.one(chance, on=True)
        how = chance.randrange(3)
        if how == 0:
            return fault
        if how == 1:
            return faults.Fault(fault.side, fault.name, "", fault.number, fault.error, True)
        every = sum(place.count for place in self.places if place.side == fault.side)
        number = int(2 ** chance.uniform(0, every.bit_length() - 1))
        error = 0 if fault.side == "libc" else chance.choice(list(faults.VENDOR_ERRORS))
        return faults.Fault(fault.side, fault.side, "", number, error, True)


class Runner:
    """Runs faults side by side, counts them, and prints what is wrong."""

    def __init__(self, jobs):
        self.jobs, self.bad, self.counts = jobs, 0, collections.Counter()

    def run(self, target, plan):
        run = faults.Run(target.program, plan, target.stubs)
        return target, plan, run, faults.judge(run, target.usual)

    def tell(self, what, target, plan, run, complaints):
        self.counts[what] += 1
        met = len(run.report.met) if run.report else len(plan)
        self.counts[f"{what} met"] += met >= len(plan)
        if not complaints:
            return
        self.bad += 1
        print(f"{target.program.name}: {','.join(map(str, plan))}", *complaints, sep="\n\t")
        for fault in plan:
            print("\tat", faults.where(fault))
        print("\t" + "\n\t".join((run.stdout + run.stderr)[-600:].splitlines()), flush=True)

    def all_of(self, what, plans, end):
        """`plans`: (target, faults), as long as the time is not up. True: it was enough for all."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = set()
            for target, plan in plans:
                if time.monotonic() >= end:
                    break
                waiting.add(pool.submit(self.run, target, plan))
                if len(waiting) > 2 * self.jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for one in done:
                        self.tell(what, *one.result())
            else:
                end = None
            for one in waiting:
                self.tell(what, *one.result())
        return end is None


def single_plans(targets, chance, progress, begin):
    """From that round and number on. Sets progress to the round and the number whose faults come next."""
    in_order = collections.defaultdict(list)
    for target in targets:
        for when, fault in target.singles():
            in_order[when].append((target, [fault]))
    for when in sorted(when for when in in_order if when >= begin):
        progress["next"] = when
        chance.shuffle(in_order[when])
        yield from in_order[when]
    progress["next"] = None


def random_plans(targets, chance):
    while True:
        target = chance.choice(targets)
        yield target, [target.one(chance), target.one(chance)]
        target = chance.choice(targets)
        yield target, [target.from_one_on(chance)]


def show(target, plan):
    run = faults.Run(target.program, plan, target.stubs)
    print(run.stdout, run.stderr, sep="")
    print(f"exit status {run.status}; met: {run.report.met if run.report else 'no report'}")
    complaints = faults.judge(run, target.usual)
    print("\n".join(complaints) or "nothing is wrong")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")))
    parser.add_argument("--from", dest="begin", type=lambda text: tuple(map(int, text.split(","))), default=(0, 1))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--program", action="append")
    parser.add_argument("plan", nargs="?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spill-faults-") as folder:
        stubs = pathlib.Path(folder) / "stubs"
        faults.write_stubs(stubs)
        chosen = [program for program in programs.all_programs() if not options.program or program.name in options.program]
        targets = [Target(program, stubs) for program in chosen]
        if options.plan:
            return show(targets[0], [faults.parse(one, targets[0].usual.report) for one in options.plan.split(",")])
        return search(targets, options)


def search(targets, options):
    begin, chance, runner, progress = time.monotonic(), random.Random(options.seed), Runner(options.jobs), {}
    end = begin + 60 * options.minutes
    total = sum(1 for target in targets for _ in target.singles())
    print(f"seed {options.seed}; {total} single faults in {len(targets)} programs", flush=True)
    whole = runner.all_of("single", single_plans(targets, chance, progress, options.begin), begin + SINGLES * 60 * options.minutes)
    runner.all_of("random", random_plans(targets, chance), end)
    far = "all of them" if whole else "to round {}, call {} of a place".format(*(progress["next"] or (2, "the last")))
    print(f"{runner.counts['single']} single faults ({far}), {runner.counts['random']} pairs and faults from one call on; "
          f"{runner.counts['single met'] + runner.counts['random met']} of these runs came to each of their faults; {runner.bad} runs wrong")
    return 1 if runner.bad else 0


if __name__ == "__main__":
    sys.exit(main())

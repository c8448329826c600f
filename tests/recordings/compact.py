#!/usr/bin/env python3
"""Makes a small recording for the tests from recordings of one program (docs/recordings.md).

usage: compact.py [--program WORDS] [--repeat N] [--share SHARE] [--phase FIRST-LAST]… [--moving N]
                  IN_PLACE.rec [OTHER.rec…] > NAME.txt

IN_PLACE is a run in which nothing moved. The last period of its launches is kept, and the first ones, in which libspill did not yet
know which chunks they access. The other runs only add times: best are those of a run with all memory on the device. With --phase
the same is done for those launches of IN_PLACE alone, by their numbers: a program that does one thing and then another. --share:
the part on the device of the time of a launch that was only measured in place. --moving: the last N periods are kept, because
the program has its buffers elsewhere in each.

The result, a line each:
  # WORDS                      a comment
  program WORDS                where it comes from
  chunks MIB[h]…               an allocation: the sizes of its chunks, and `h` if it is on the host. Chunks have the numbers 0, 1, …
  period REPEATS               the lines behind it are repeated so often; 1: the begin of the next one
  L SITE NS SURE FIRST[-LAST][:NS]… [| CHUNK+OFFSET:UNITS…]
                               a launch: its time on the device, and the time that each of its chunks adds on the host. The
                               first SURE chunks are certain. Its buffers, in units of 2 MiB from a chunk's begin on
  G …                          a graph, likewise
  C NS FIRST[-LAST][:NS]…      a copy, likewise
  W                            the program waits for the device
"""
import argparse
import bisect
import collections
import gzip
import pathlib
import statistics
import sys

UNIT_MIB = 2
# The program waits where the gap before a launch is so much longer than usual, in half of the periods of each run.
WAIT_US, WAIT_TIMES = 200, 5
# So many of the launches run the same code as a period ago, and so many on the same chunks. Layers run the same code on others.
SAME = 0.95
SAME_CHUNKS = 0.8
# So many of the last launches are the same, exactly, before a length is looked at closely.
LOOK = 4
# Most periods that are kept as the begin.
BEGINS = 3
# Launches before and behind one that tell which of the uses of some code it is, as the layers of a model repeat.
CONTEXT = 3
# A launch that was never measured in place: it reads each byte once over the link of an H200, but no more than it can read from
# device memory in the time by which it is longer than the shortest launch.
LINK_NS_PER_MIB, LINK_SLOWER = 18000, 64
# The part on the device of the time of a launch that was only measured in place.
SHARE = 0.1
# Not every launch has a time, so the costs in place are scaled to the length of the periods; by so much at most.
SCALE_MOST = 2


def parts_of(words):
    """The chunks of a launch, and its ranges (none in recordings of version 1)."""
    bar = words.index("|") if "|" in words else len(words)
    return words[:bar], words[bar + 1:]


class Launch:
    def __init__(self, words):
        self.number, self.time, self.site = int(words[0]), int(words[1]), int(words[2])
        self.kind, self.sure = "LCG"[int(words[4])], int(words[5])
        chunks, ranges = [[part.split(":") for part in parts] for parts in parts_of(words[8:])]
        self.mib = {int(key, 16): UNIT_MIB * int(units.rstrip("h")) for key, units in chunks}
        self.host = frozenset(int(key, 16) for key, units in chunks if units.endswith("h"))
        self.ranges = [(int(first, 16), int(units)) for first, units in ranges]
        self.code = (self.site, self.kind)
        self.name = (*self.code, len(self.mib))
        self.ns = None

    def host_mib(self):
        return sum(self.mib[key] for key in self.host)


def lines(path):
    """The letter and the words of each line of a file; `spill-recording` begins another recording, and the last one counts."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="ascii") as file:
        for line in file:
            letter, *words = line.split()
            yield letter, words


def read(path, first=0, last=sys.maxsize):
    """The launches of the last recording in a file, with their times."""
    launches = {}
    for letter, words in lines(path):
        if letter == "spill-recording":
            launches = {}
        elif letter == "L" and first <= int(words[0]) <= last:
            launches[int(words[0])] = Launch(words)
        elif letter == "T" and int(words[0]) in launches:
            launches[int(words[0])].ns = int(words[2])
    return list(launches.values())


def period_length(launches, same_chunks=SAME_CHUNKS):
    """The least number of launches after which nearly all repeat."""
    codes = [launch.code for launch in launches]
    for length in range(1, len(launches) // 2):
        if codes[-1 - length:-1 - length - LOOK:-1] == codes[-1:-1 - LOOK:-1] and repeats(launches, len(launches) - length, length):
            pairs = zip(launches[-length:], launches[-2 * length:-length])
            if sum(a.mib == b.mib for a, b in pairs) >= same_chunks * length:
                return length
    sys.exit("the launches do not repeat")


def repeats(launches, at, length):
    """True if the period at `at` runs the same code as the one before."""
    same = sum(launches[i].code == launches[i - length].code for i in range(at, at + length))
    return at >= length and same >= SAME * length


def waits(periods):
    """Places of a period where the program waits, in half of the periods."""
    gaps = [[b.time - a.time for a, b in zip([before[-1]] + period, period)] for before, period in zip(periods, periods[1:])]
    if not gaps:
        return {}
    usual = statistics.median(gap for period in gaps for gap in period)
    medians = [statistics.median(place) for place in zip(*gaps)]
    return {place: gap for place, gap in enumerate(medians) if gap >= max(WAIT_US, WAIT_TIMES * usual)}


def split(launches, at, length):
    return [launches[i:i + length] for i in range(at, len(launches) - length + 1, length)]


def cut(launches, length, shift=None):
    """The periods of a run, without what came before it repeated. Without a shift, they begin at the longest wait."""
    at = len(launches) - length
    while repeats(launches, at, length):
        at -= length
    if shift is None:
        long = waits(split(launches, at, length))
        shift = max(long, key=long.__getitem__, default=0)
    at += shift
    while repeats(launches, at, length):
        at -= length
    return split(launches, at, length)


def begins(periods):
    """The first periods, as long as launches name other chunks than in the last one."""
    same = [sum(a.name == b.name for a, b in zip(period, periods[-1])) >= SAME * len(period) for period in periods]
    return periods[:min(same.index(True), BEGINS)]


def match(period, other):
    """How far `other` must be shifted to be the same code as `period`; None: it is another program. Names of sites differ."""
    counts = [collections.Counter(launch.site for launch in run) for run in (period, other)]
    place = min(range(len(period)), key=lambda i: counts[0][period[i].site])
    for shift in range(len(period)):
        if counts[1][other[(place + shift) % len(other)].site] != counts[0][period[place].site]:
            continue
        turned = other[shift:] + other[:shift]
        pairs = collections.Counter((a.site, b.site) for a, b in zip(period, turned))
        best = {a: pair for pair in sorted(pairs, key=pairs.__getitem__) for a in [pair[0]]}
        if sum(pairs[pair] for pair in best.values()) >= SAME * len(period) and \
                all(a.kind == b.kind for a, b in zip(period, turned)):
            return shift
    return None


def chunk_table(periods):
    """Size and side of each chunk, by key. A chunk that another one overlaps is gone."""
    table = {}
    for launch in (launch for period in periods for launch in period):
        for key, mib in launch.mib.items():
            if table.get(key, (0,))[0] != mib:
                gone = [old for old, (size, _) in table.items() if old < key + mib // UNIT_MIB and key < old + size // UNIT_MIB]
                for old in gone:
                    del table[old]
            table[key] = (mib, key in launch.host)
    return dict(sorted(table.items()))


def allocations(table):
    """The keys by allocation: neighbours, all of one size but the last, which is smaller."""
    lists = []
    for key, (mib, _) in table.items():
        last = lists[-1] if lists else None
        if last and last[-1] + table[last[-1]][0] // UNIT_MIB == key and table[last[-1]][0] == table[last[0]][0] >= mib:
            last.append(key)
        else:
            lists.append([key])
    return lists


class Times:
    """What the launch at each place of the period takes, from all runs."""

    def __init__(self, runs, table, share, moving=False):
        self.period, self.share, self.moving = runs[0][-1], share, moving
        self.samples = [[] for _ in self.period]
        for periods in runs:
            for period in periods:
                for place, launch in enumerate(period):
                    named = len(launch.mib) == len(self.period[place].mib)
                    if named and launch.ns is not None and launch.host <= set(table):
                        self.samples[place].append(launch)
        sites = [launch.site for launch in self.period]
        around = sites[-CONTEXT:] + sites + sites[:CONTEXT]
        contexts = [tuple(around[place:place + 2 * CONTEXT + 1]) for place in range(len(sites))]
        by_context, by_site = collections.defaultdict(list), collections.defaultdict(list)
        for place, site in enumerate(sites):
            by_context[contexts[place]].append(place)
            by_site[site].append(place)
        # Of each place: itself, those that do the same, those that run the same code.
        self.alike = [([place], by_context[contexts[place]], by_site[site]) for place, site in enumerate(sites)]
        self.shortest = min((launch.ns for taken in self.samples for launch in taken if not launch.host), default=0)
        self.device = [self.device_time(place) for place in range(len(self.period))]
        self.rates = [self.rates_of(place) for place in range(len(self.period))]
        self.costs = [self.cost_of(place) for place in range(len(self.period))]
        self.scale = 1
        self.scale = self.scale_for(runs[0])

    def device_time(self, place):
        """Measured there, or at a place that is alike."""
        for places in self.alike[place]:
            resident = [launch.ns for i in places for launch in self.samples[i] if not launch.host]
            if resident:
                return statistics.median(resident)
        in_place = [launch.ns for i in places for launch in self.samples[i]]
        return max(self.share * min(in_place, default=0), min([self.shortest, *in_place]))

    def rates_of(self, place):
        """By chunk: ns that a MiB on the host adds there, where it was measured."""
        seen = collections.defaultdict(list)
        for launch in self.samples[place]:
            for key in launch.host:
                seen[key].append(max(launch.ns - self.device[place], 0) / launch.host_mib())
        return {key: statistics.median(rates) for key, rates in seen.items()}

    def cost_of(self, place):
        """ns that a MiB on the host adds, by the times of all chunks there or at places that are alike, or by an estimate. A
        launch that names fewer chunks than one that is alike uses as much of them."""
        for places in self.alike[place]:
            seen = [(launch.ns - self.device[i], launch.host_mib()) for i in places for launch in self.samples[i] if launch.host]
            if seen:
                mib = self.period[place].host_mib() or statistics.median(mib for _, mib in seen)
                return max(statistics.median(ns for ns, _ in seen), 0) / mib
        reading_ns = self.device[place] - self.shortest
        return min(LINK_NS_PER_MIB, LINK_SLOWER * reading_ns / sum(self.period[place].mib.values()))

    def rate(self, place, key):
        """The same for one chunk, where it was measured."""
        return self.rates[place].get(key, self.costs[place])

    def cost(self, place, key, begin=None):
        """ns of a chunk on the host. 0 if only a launch at the begin names it, and buffers do not move."""
        mib = self.period[place].mib.get(key) or (begin.mib.get(key) if self.moving else None)
        return round(self.scale * self.rate(place, key) * mib) if mib else 0

    def scale_for(self, periods):
        """Costs that make the last period, in place, as long as it was. The device is busy all the time, or this is too much."""
        lengths = [1000 * (b[0].time - a[0].time) for a, b in zip(periods, periods[1:])]
        more = sum(self.cost(place, key) for place, launch in enumerate(self.period) for key in launch.host)
        if not lengths or not more:
            return 1
        scale = (statistics.median(lengths[len(lengths) // 2:]) - sum(self.device)) / more
        return min(max(scale, 1 / SCALE_MOST), SCALE_MOST)


class Phase:
    """The periods of the same launches in all files, what began them, and where the program waits."""

    def __init__(self, files, first, last, moving=0):
        launches = read(files[0], first, last)
        self.length = period_length(launches, 0 if moving else SAME_CHUNKS)
        self.runs = [cut(launches, self.length)]
        self.begins = self.runs[0][-moving:-1] if moving else begins(self.runs[0])
        for path in files[1:]:
            self.runs.append(self.other_run(path))
        self.waits = set.intersection(*(set(waits(run)) for run in self.runs if len(run) > 1)) | {0}

    def other_run(self, path):
        launches = read(path)
        shift = match(self.runs[0][-1], cut(launches, self.length, 0)[-1])
        if shift is None:
            sys.exit(f"{path} is not the same program")
        return cut(launches, self.length, shift)

    def __str__(self):
        return f"{self.length} launches, {[len(run) for run in self.runs]} periods, {len(self.begins)} before, " \
               f"waits at {sorted(self.waits)}"


class Writer:
    def __init__(self, table):
        self.table = table
        self.keys = sorted(table)
        self.numbers = {key: number for number, key in enumerate(key for keys in allocations(table) for key in keys)}

    def head(self, program):
        print("program", program)
        for keys in allocations(self.table):
            print("chunks", *(f"{self.table[key][0]}{'h' if self.table[key][1] else ''}" for key in keys))

    def chunks(self, times, place, launch):
        """(number, number of the last one, ns of each): neighbours that cost the same are one."""
        runs = []
        for key in launch.mib:
            if key not in self.numbers:
                continue
            number, ns = self.numbers[key], times.cost(place, key, launch)
            if runs and ns == runs[-1][2] and runs[-1][1] + 1 == number:
                runs[-1][1] = number
            else:
                runs.append([number, number, ns])
        return runs

    def ranges(self, launch):
        """(number of the chunk, units from its begin on, units) of each range that begins in a chunk."""
        found = []
        for first, units in launch.ranges:
            at = bisect.bisect_right(self.keys, first) - 1
            if at >= 0 and first < self.keys[at] + self.table[self.keys[at]][0] // UNIT_MIB:
                found.append((self.numbers[self.keys[at]], first - self.keys[at], units))
        return found

    def period(self, phase, times, repeat, launches):
        print("period", repeat)
        for place, launch in enumerate(launches):
            if place in phase.waits:
                print("W")
            head = ["C"] if launch.kind == "C" else [launch.kind, launch.site]
            sure = [] if launch.kind == "C" else [sum(key in self.numbers for key in list(launch.mib)[:launch.sure])]
            chunks = [f"{first}" + f"-{last}" * (last > first) + f":{ns}" * (ns > 0)
                      for first, last, ns in self.chunks(times, place, launch)]
            ranges = [f"{number}+{offset}:{units}" for number, offset, units in self.ranges(launch)]
            print(*head, f"{times.device[place]:.0f}", *sure, *chunks, *["|"] * bool(ranges), *ranges)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", default="")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--share", type=float, default=SHARE)
    parser.add_argument("--moving", type=int, default=0)
    parser.add_argument("--phase", action="append", default=[])
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    bounds = [[int(number) for number in words.split("-")] for words in options.phase] or [[0, sys.maxsize]]
    phases = [Phase(options.files, first, last, options.moving) for first, last in bounds]
    kept = [phase.runs[0] if options.moving else phase.runs[0][len(phase.begins):] for phase in phases]
    table = chunk_table([period for periods in kept for period in periods])
    writer = Writer(table)
    writer.head(options.program or options.files[0].stem)
    for phase in phases:
        print(phase, file=sys.stderr)
        times = Times(phase.runs, table, options.share, options.moving > 0)
        for period in phase.begins:
            writer.period(phase, times, 1, period)
        writer.period(phase, times, options.repeat, phase.runs[0][-1])


if __name__ == "__main__":
    main()

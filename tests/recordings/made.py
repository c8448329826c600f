#!/usr/bin/env python3
"""Makes a recording by hand of a program that was not recorded: what would movable.follow decide for it (docs/recordings.md)?

usage: made.py PROGRAM [DEVICE_MIB] > FILE.txt      then: build/tests/unit/test_recordings FILE.txt 0 999

PROGRAM:
  tables       a language model writes tokens, and looks up some rows of a table a layer (tests/gpu/tutorial_job.py)
  models:N     two models in turns, N steps each, as of a draft and its critic
  experts      a mixture of experts writes six tokens, again and again; some experts are asked more often
  images       a text encoder, then 20 steps of a U-Net, then a decoder: an image
  recommender  a step of training with 16 large tables, of which a step reads little

The costs are those of an H200 (docs/measurements.md): a MiB that is read once takes 20 us over the link and 0.24 on the device. What
was allocated last is on the host, but for `tables`, where the first weights have left.
"""
import random
import sys

LINK_NS, DEVICE_NS = 20000, 240


class Program:
    """Allocations of chunks, and launches that use them."""

    def __init__(self, host_ns):
        self.host_ns, self.chunks, self.allocations, self.lines = host_ns, [], [], []
        self.away, self.repeats = set(), 60

    def alloc(self, mib):
        """In chunks as libspill makes them. Returns them."""
        size = 64 if mib >= 128 else 16
        made = range(len(self.chunks), len(self.chunks) + -(-mib // size))
        self.chunks += [min(size, mib - size * i) for i in range(len(made))]
        self.allocations.append(made)
        return made

    def mib(self, chunks):
        return sum(self.chunks[chunk] for chunk in chunks)

    def launch(self, site, device_ns, *uses):
        """uses: chunks, and the ns that all of them add in place."""
        costs, ranges = [], []
        for chunks, in_place_ns in uses:
            all_mib = self.mib(chunks)
            costs += [f"{chunk}:{int(in_place_ns * self.chunks[chunk] / all_mib)}" for chunk in chunks]
            ranges.append(f"{chunks[0]}+0:{max(1, all_mib // 2)}")
        self.lines.append(f"L {site} {int(device_ns)} {len(costs)} {' '.join(costs)} | {' '.join(ranges)}")

    def read(self, site, chunks, *others, times=1.0, device_ns=0):
        """A launch that reads them once, or in place some times."""
        mib = self.mib(chunks)
        self.launch(site, device_ns or 3000 + 1.2 * DEVICE_NS * mib, (chunks, mib * LINK_NS * times), *others)

    def wait(self):
        self.lines.append("W")

    def leave(self, mib, order):
        """So much is on the host: of these allocations."""
        for chunk in (chunk for chunks in order for chunk in chunks):
            if mib > 0:
                self.away.add(chunk)
                mib -= self.chunks[chunk]

    def show(self, words):
        print(f"program {words}\nhost {self.host_ns}")
        for chunks in self.allocations:
            print("chunks", *(f"{self.chunks[chunk]}{'h' if chunk in self.away else ''}" for chunk in chunks))
        print(f"period {self.repeats}", *self.lines, sep="\n")


def tables(program):
    words, layers = program.alloc(256), []
    for _ in range(20):
        layers.append({name: program.alloc(mib) for name, mib in (("table", 80), ("qkv", 96), ("out", 32), ("up", 128), ("down", 128))})
        if len(layers) == 1:
            space = program.alloc(32), 20000
            program.alloc(32)
    few = program.alloc(2), 3000
    caches = [[(program.alloc(16), program.alloc(16)) for _ in layers] for _ in range(5)]

    def small(*sites):
        for site in sites:
            program.launch(site, 2500, few)

    program.launch(1, 3000, (words, 6000), few)
    for number, layer in enumerate(layers):
        program.launch(2, 3500, (layer["table"], 8000), few)
        small(3, 4, 5)
        program.read(6, layer["qkv"], few, space)
        small(7, 7, 8, 8)
        for block in caches:
            program.read(9, block[number][0], few)
        small(10, 11, 12, 13)
        for block in caches:
            program.read(14, block[number][1], few)
            small(15)
        program.read(16, layer["out"], few, space)
        small(17, 5)
        program.read(18, layer["up"], few, space)
        small(19)
        program.read(20, layer["down"], few, space)
        small(17)
    small(5)
    program.read(21, words, few, times=2.6, device_ns=80000)
    small(22, 23, 24, 25, 26)
    program.wait()
    program.repeats = 200
    return [words] + [layer[name] for layer in layers for name in ("up", "down")]


def models(program, steps):
    both = [[program.alloc(64) for _ in range(60)] for _ in range(2)]
    work = program.alloc(64), 3000
    for site, weights in ((1, both[0]), (3, both[1])):
        for _ in range(steps):
            for one in weights:
                program.read(site, one, work, device_ns=40000)
                program.launch(2, 4000, work)
            program.wait()
    program.repeats = max(6, 240 // steps)


def experts(program):
    layers = [(program.alloc(48), [program.alloc(32) for _ in range(8)]) for _ in range(24)]
    work, caches, chance = (program.alloc(16), 5000), [program.alloc(32) for _ in layers], random.Random(1)
    for _ in range(6):
        for (attention, ones), cache in zip(layers, caches):
            program.read(1, attention, work, device_ns=30000)
            program.read(2, cache, work, device_ns=20000)
            program.launch(3, 4000, work)
            for one in sorted(set(chance.choices(range(8), [5, 3, 1, 1, .5, .5, .2, .1], k=2))):
                program.read(4, ones[one], work, device_ns=25000)
        program.wait()
    program.repeats = 40


def images(program):
    encoder, net, decoder = ([program.alloc(mib) for _ in range(count)] for mib, count in ((96, 40), (64, 70), (32, 6)))
    work, picture = program.alloc(256), (program.alloc(768), 2 * 768 * LINK_NS)
    for one in encoder:
        program.read(1, one, (work, 20000), device_ns=400000)
        program.launch(2, 5000, (work, 20000))
    program.wait()
    for one in 20 * net:
        program.read(10, one, (work, 1000000), device_ns=1200000)
        program.launch(11, 30000, (work, 300000))
    for one in decoder:
        program.read(20, one, picture, device_ns=3000000)
    program.wait()
    program.repeats = 12


def recommender(program):
    large, weights = [program.alloc(512) for _ in range(16)], [program.alloc(64) for _ in range(20)]
    work = program.alloc(128)
    for one in large:
        program.launch(1, 40000, (one, 800000), (work, 100000))
    for one in weights:
        program.read(2, one, (work, 1000000), device_ns=200000)
        program.launch(3, 10000, (work, 300000))
    for one in reversed(weights):
        program.read(4, one, (work, 1000000), times=2, device_ns=400000)
    for one in large:
        program.launch(5, 60000, (one, 2000000), (work, 100000))
    program.wait()
    program.repeats = 100


def main():
    word, _, number = sys.argv[1].partition(":")
    known = {"tables": (tables, 11500, 20000), "models": (lambda program: models(program, int(number or 30)), 5120, 8000),
             "experts": (experts, 5000, 8000), "images": (images, 6144, 8000), "recommender": (recommender, 6144, 8000)}
    if word not in known:
        sys.exit(__doc__)
    make, device_mib, host_ns = known[word]
    program = Program(host_ns)
    order = make(program) or program.allocations[::-1]
    program.leave(sum(program.chunks) - int(sys.argv[2] if len(sys.argv) > 2 else device_mib), order)
    program.show(f"made by hand: {sys.argv[1]}, {sum(program.chunks)} MiB")


main()

"""What the framework jobs share: data that differs in every word, its verification per page, the vendor's figure.

A framework gives an index array (0, 1, 2, … of 64 bits, on the device), numpy's arithmetic on it, and two functions. That
array and the data are `total` MiB in all, 24 arrays of one size; what the arithmetic needs in between comes on top.
"""
import numpy

from figure import used_mib

ARRAYS = 24
WORDS_IN_PAGE = 4096 // 8


def pattern(index, seed):
    return (index * (2 * seed + 1) + (seed << 40)) * 3


def bad_pages(array, expected):
    return int((~(array == expected).reshape(-1, WORDS_IN_PAGE).all(1)).sum())


class Job:
    """Made before the framework is imported; `started` follows its first use of the device, which makes the context."""

    def __init__(self, total_mib, limit_mib):
        self.limit, self.mib = limit_mib, total_mib // ARRAYS
        self.words = (self.mib << 20) // 8
        self.empty = used_mib()
        self.context = self.peak = self.bad = 0

    def started(self):
        self.context = used_mib() - self.empty

    def run(self, index, synchronize, to_host):
        """Fills the arrays, replaces every second, verifies all of them on the device and two on the host."""
        data = [pattern(index, seed) for seed in range(ARRAYS - 1)]
        synchronize(data)
        self.peak = used_mib() - self.empty
        for seed in range(0, len(data), 2):
            data[seed] = None
            data[seed] = pattern(index, seed + 100)
        synchronize(data)
        self.peak = max(self.peak, used_mib() - self.empty)
        seeds = [seed if seed % 2 else seed + 100 for seed in range(len(data))]
        for array, seed in zip(data, seeds):
            self.bad += bad_pages(array, pattern(index, seed))
        on_host = numpy.arange(self.words, dtype=numpy.int64)
        for which in (0, -1):
            self.bad += bad_pages(to_host(data[which]), pattern(on_host, seeds[which]))

    def verdict(self, name, *, figure=True):
        """Prints the result; the exit status. `figure`: the vendor's figure must be within what is allowed."""
        allowed = self.limit + self.context + self.limit * 5 // 100
        print(f"{name}: {ARRAYS} arrays of {self.mib} MiB, {self.bad} bad pages; vendor's figure {self.peak} MiB, allowed "
              f"{allowed} (limit {self.limit}, context {self.context})")
        return 1 if self.bad or (figure and self.peak > allowed) else 0

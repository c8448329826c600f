"""Writes a log of so many records, as a program on a device that all of it fits on leaves it: cached_log.py RECORDS >LOG

Allocations of four sizes from 64 call sites, up to 4000 of them at a time, freed in any order.
"""
import random
import sys

from loglines import alloc, event, free, start


def lines(count):
    chance, live, seq = random.Random(1), [], 0
    yield start(80 << 30)
    for order in range(1, count):
        time = f"{order * 1e-5:.6f}"
        if len(live) < 4000 and (not live or chance.random() < 0.52):
            seq += 1
            size = chance.choice((4096, 524288, 2097152, 20971520))
            caller = f"libtorch_cuda.so+{chance.randrange(64) * 4096 + 0x1a2b:#x}"
            live.append((seq, size, caller))
            yield alloc(event(time, seq, order, 4711), caller, size, 0x302000000 + seq * 512)
        else:
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            old, size, caller = live.pop()
            yield free(event(time, old, order, 4711), caller, size, 0x302000000 + old * 512)


sys.stdout.writelines(lines(int(sys.argv[1])))

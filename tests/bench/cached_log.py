"""Writes a log of so many records, as a program on a device that all of it fits on leaves it: cached_log.py RECORDS >LOG

Allocations of four sizes from 64 call sites, up to 4000 of them at a time, freed in any order.
"""
import random
import sys

START = ('{"v":1,"kind":"start","t":0.000000,"time":"2026-11-21T00:00:00.000000Z","boot":"b","host":"node7","pid":4711,"ppid":1,"program":"train.py",'
         '"exe":"/usr/bin/python3","version":"0.1.0","backend":"cuda","driver":13000,"devices":[{"dev":0,"name":"simulated","uuid":"GPU-0",'
         '"bytes":85899345920}],"policy":[],"args":["train.py"]}\n')


def lines(count):
    chance, live, seq = random.Random(1), [], 0
    yield START
    for order in range(1, count):
        time = order * 1e-5
        if len(live) < 4000 and (not live or chance.random() < 0.52):
            seq += 1
            size = chance.choice((4096, 524288, 2097152, 20971520))
            caller = f"libtorch_cuda.so+{chance.randrange(64) * 4096 + 0x1a2b:#x}"
            live.append((seq, size, caller))
            yield (f'{{"v":1,"kind":"alloc","t":{time:.6f},"seq":{seq},"order":{order},"tid":4711,"dev":0,"api":"cudaMalloc","caller":"{caller}",'
                   f'"bytes":{size},"ptr":"{0x302000000 + seq * 512:#x}","place":"device","device_bytes":{size},"reason":"fits","rule":"default","us":12}}\n')
        else:
            at = chance.randrange(len(live))
            live[at], live[-1] = live[-1], live[at]
            old, size, caller = live.pop()
            yield (f'{{"v":1,"kind":"free","t":{time:.6f},"seq":{old},"order":{order},"tid":4711,"dev":0,"api":"cudaFree","caller":"{caller}",'
                   f'"bytes":{size},"ptr":"{0x302000000 + old * 512:#x}","place":"device","reason":"free","us":3}}\n')


sys.stdout.writelines(lines(int(sys.argv[1])))

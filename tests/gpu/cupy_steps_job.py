"""A pipeline in CuPy, unmodified: signals of 256 MiB each, their spectra, means, a product and a sort.

usage: cupy_steps_job.py SIGNALS STEPS

Standard output is a figure of each step, digit for digit: it must not depend on where memory is. Standard error: as of train_job.py;
the peak is by CuPy's own pool.
"""
import sys
import time

import cupy
from job_times import tell_step, tell_times, wait_for_turn

ROWS, COLUMNS, PRODUCT = 4096, 16384, 2048
count, steps = int(sys.argv[1]), int(sys.argv[2])


def signal(seed):
    """No random numbers: the same on each machine."""
    index = cupy.arange(ROWS * COLUMNS, dtype=cupy.float32).reshape(ROWS, COLUMNS)
    return cupy.sin(index * cupy.float32(1e-3 * (seed + 1)))


def step(signals):
    total = cupy.zeros((PRODUCT, PRODUCT), cupy.float32)
    tops = []
    for x in signals:
        x *= cupy.float32(0.999)
        power = cupy.abs(cupy.fft.rfft(x, axis=1)).mean(axis=0)
        tops.append(cupy.sort(power)[-8:])
        total += x[:PRODUCT] @ x[:PRODUCT].T
    return cupy.stack(tops), total


wait_for_turn()
signals = [signal(seed) for seed in range(count)]
times = []
for number in range(steps):
    start = time.monotonic()
    tops, total = step(signals)
    cupy.cuda.Device().synchronize()
    times.append((time.monotonic() - start) * 1e3)
    print(" ".join(f"{value:.9g}" for value in tops[0].tolist()), f"{float(cupy.trace(total)):.9g}", flush=True)
    tell_step(number, times[-1])
tell_times(times[1:] or times, cupy.get_default_memory_pool().total_bytes() >> 20)

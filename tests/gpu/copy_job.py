"""What the link does: one copy of a GiB between pinned and device memory, by PyTorch, each way and both ways at once.

usage: copy_job.py      prints `NAME MILLISECONDS` lines, medians: in, out, both (a GiB each way)
"""
import statistics
import time

from torch_model import torch, wait

SIZE, ROUNDS = 1 << 30, 7
on_host = [torch.ones(SIZE, dtype=torch.uint8).pin_memory() for _ in range(2)]
on_device = [torch.zeros(SIZE, dtype=torch.uint8, device="cuda") for _ in range(2)]
side = torch.cuda.Stream()


def come():
    on_device[0].copy_(on_host[0], non_blocking=True)


def leave():
    with torch.cuda.stream(side):
        on_host[1].copy_(on_device[1], non_blocking=True)


def median(*copies):
    times = []
    for _ in range(ROUNDS + 1):
        wait()
        start = time.monotonic()
        for copy in copies:
            copy()
        wait()
        times.append((time.monotonic() - start) * 1e3)
    return statistics.median(times[1:])


print(f"in {median(come):.2f}\nout {median(leave):.2f}\nboth {median(come, leave):.2f}")

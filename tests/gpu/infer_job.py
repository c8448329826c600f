"""Inference in PyTorch: a transformer with 8.4 GiB of weights in bf16, plain PyTorch, unmodified.

usage: infer_job.py PASSES

Standard output is a sum of each pass's result, one a line, digit for digit: it must not depend on where memory is.
Standard error: as job_times.py tells it, with `peak` in MiB by PyTorch's own account.
"""
import sys
import time

import torch
from job_times import tell_step, tell_times, wait_for_turn
from torch import nn
from torch_model import Block, deterministic

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 22, 4096, 32, 8, 512

wait_for_turn()
deterministic()
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    net = nn.Sequential(*[Block(WIDTH, HEADS) for _ in range(LAYERS)]).eval()
    tokens = torch.randn(BATCH, LENGTH, WIDTH)
times = []
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        start = time.monotonic()
        value = net(tokens).float().abs().sum().item()
        torch.cuda.synchronize()
        times.append((time.monotonic() - start) * 1e3)
        print(f"{value:.9g}", flush=True)
        tell_step(len(times) - 1, times[-1])
tell_times(times[1:] or times, torch.cuda.max_memory_reserved() >> 20)

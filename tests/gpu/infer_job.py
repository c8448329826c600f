"""Inference in PyTorch: a transformer with 8.4 GiB of weights in bf16, plain PyTorch, unmodified.

usage: infer_job.py PASSES

Standard output is a sum of each pass's result, one a line, digit for digit: it must not depend on where memory is.
Standard error: `ms` a pass without the first, and `peak` in MiB by PyTorch's own account.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch_model import Block, deterministic

LAYERS, WIDTH, HEADS, BATCH, LENGTH = 22, 4096, 32, 8, 512

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
print(f"ms {statistics.median(times[1:] or times):.1f}\npeak {torch.cuda.max_memory_reserved() >> 20}", file=sys.stderr)

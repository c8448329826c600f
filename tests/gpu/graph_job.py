"""Decodes token by token in PyTorch, each by one launch of a CUDA graph, from a large cache of which little is read.

usage: graph_job.py TOKENS [PART]

Weights of 7 GiB are read once a token, and a PART (default 0.05) of a cache of 2 GiB four times, as a language model's server
does that has room for long conversations and holds short ones. Standard output is a sum of each token's result, digit for digit:
it must not depend on where memory is. Standard error: `ms` a token, the median of each quarter of the tokens.
"""
import statistics
import sys
import time

import torch
from torch_model import deterministic

LAYERS, WIDTH, INNER, HEAD = 28, 8192, 16384, 1024
TOKENS, PART = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.05

deterministic()
with torch.device("cuda"), torch.inference_mode():
    weights = [torch.randn(INNER, WIDTH, dtype=torch.bfloat16) for _ in range(LAYERS)]
    cache = torch.randn(LAYERS, (1 << 30) // LAYERS, dtype=torch.bfloat16)
    value = torch.randn(WIDTH, dtype=torch.bfloat16)
    sums = torch.zeros(LAYERS * 5)

    def token():
        for layer in range(LAYERS):
            out = torch.mv(weights[layer], value)
            sums[layer * 5] = out.float().abs().mean()
            used = cache[layer][: int(cache.shape[1] * PART) // HEAD * HEAD].view(-1, HEAD)
            for turn in range(4):
                sums[layer * 5 + 1 + turn] = torch.mv(used, value[:HEAD]).float().abs().mean()

    token()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        token()
    times = []
    for _ in range(TOKENS):
        start = time.monotonic()
        graph.replay()
        result = sums.double().sum().item()
        times.append((time.monotonic() - start) * 1e3)
        print(f"{result:.9g}", flush=True)
quarter = max(1, TOKENS // 4)
medians = [statistics.median(times[i : i + quarter]) for i in range(0, TOKENS, quarter)]
print("ms " + " ".join(f"{ms:.1f}" for ms in medians), file=sys.stderr)

"""PyTorch with a cache full of freed blocks, then a tensor that fits only if the cache goes.

usage: torch_cache_job.py CACHE_MIB TENSOR_MIB

Prints how much PyTorch had reserved before and has after; fails if its data is wrong.
"""
import sys

import torch

from job import bad_pages, pattern

cache_mib, tensor_mib = int(sys.argv[1]), int(sys.argv[2])
blocks = [torch.ones(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(cache_mib // 256)]
torch.cuda.synchronize()
del blocks
before = torch.cuda.memory_reserved() >> 20
tensor = torch.empty((tensor_mib << 20) // 8, dtype=torch.int64, device="cuda")
after = torch.cuda.memory_reserved() >> 20
print(f"{before} {after}")
bad, words = 0, (64 << 20) // 8
index = torch.arange(words, device="cuda", dtype=torch.int64)
for seed, part in enumerate(tensor.split(words)):
    part.copy_(pattern(index, seed))
for seed, part in enumerate(tensor.split(words)):
    bad += bad_pages(part, pattern(index, seed))
sys.exit(1 if bad else 0)

"""PyTorch, unmodified, with more tensors than its device limit: fills, computes on all of them, verifies each page.

usage: torch_job.py MIB LIMIT_MIB

Prints the vendor's own figure of device memory in use at the peak; fails if it is above the limit, the context and 5 %.
"""
import subprocess
import sys

import torch


def used_mib():
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout)


def main():
    total_mib, limit_mib = int(sys.argv[1]), int(sys.argv[2])
    empty = used_mib()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    context = used_mib() - empty
    words = (256 << 20) // 8
    index = torch.arange(words, device="cuda", dtype=torch.int64)
    expected = torch.empty_like(index)
    # The two above are 512 MiB; the rest are the data.
    count = (total_mib - 512) // 256
    data = [torch.empty_like(index) for _ in range(count)]
    for seed, tensor in enumerate(data):
        torch.mul(index, 2 * seed + 1, out=tensor)
        tensor.add_(seed << 40)
    for tensor in data:
        tensor.mul_(3)
    torch.cuda.synchronize()
    peak = used_mib() - empty
    bad = 0
    for seed, tensor in enumerate(data):
        torch.mul(index, 2 * seed + 1, out=expected)
        expected.add_(seed << 40).mul_(3)
        pages = torch.eq(tensor, expected).view(-1, 512).all(dim=1)
        bad += int((~pages).sum())
    allowed = limit_mib + context + limit_mib * 5 // 100
    print(f"torch {torch.__version__}: {count} tensors of 256 MiB and 512 MiB, {bad} bad pages; "
          f"device {peak} MiB at the peak, allowed {allowed} (limit {limit_mib}, context {context})")
    return 1 if bad or peak > allowed else 0


sys.exit(main())

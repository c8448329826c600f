"""A kernel for gate_job.py: Triton reads its source from a file."""
import torch
import triton
from triton import language as tl


@triton.jit
def _add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < count) + tl.load(y + at, mask=at < count), mask=at < count)


def add(x, y):
    out = torch.empty_like(x)
    _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out

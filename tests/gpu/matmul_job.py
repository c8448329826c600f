"""Matrix products in sequence in PyTorch, unmodified: 64 weights of 128 MiB, 8 GiB of fp16 in all, each read once a step.

usage: matmul_job.py BATCH STEPS      rows of what the weights are multiplied with, 4,096 at most

Standard output is a checksum a step: it must not depend on where memory is. Standard error: see run_steps. The memory that it
needs does not depend on BATCH.
"""
import sys

from job_times import wait_for_turn
from torch_model import deterministic, run_steps, torch

batch, steps = int(sys.argv[1]), int(sys.argv[2])
WIDTH, COUNT, MOST = 8192, 64, 4096
if batch > MOST:
    sys.exit(__doc__)

wait_for_turn()
deterministic()
options = {"device": "cuda", "dtype": torch.float16}
# One by one, each larger than what PyTorch puts together (10 MiB), so it asks for a segment for each. Scaled such that a product
# is about as large as what went in, however many follow one another.
weights = [torch.randn(WIDTH, WIDTH, **options).mul_(WIDTH ** -0.5) for _ in range(COUNT)]
rows, here, there = (torch.randn(MOST, WIDTH, **options)[:batch] for _ in range(3))


def products():
    come, go = rows, here
    for weight in weights:
        torch.mm(come, weight, out=go)
        come, go = go, (there if go is here else here)
    return come


run_steps(steps, products)

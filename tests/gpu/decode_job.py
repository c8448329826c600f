"""Greedy inference in PyTorch, unmodified, with a KV cache that grows by one position a step, each layer's by a new tensor.

usage: decode_job.py LAYERS BATCH POSITIONS      width 4,096; a layer is 384 MiB of weights and 16 KiB of cache a position and row

Standard output is the tokens of the first rows and a hash of all of them: they must not depend on where memory is. Standard error:
`NAME VALUE` lines (ms a step over the last half, its least and most, peak in MiB by PyTorch's own account).
"""
import hashlib
import sys
import time

from job_times import tell_times
from torch_model import model, peak_mib, torch, wait

layers, batch, positions = (int(argument) for argument in sys.argv[1:4])
WORDS, ROWS, PROMPT = 8192, 4, 8

net = model(layers=layers, width=4096, heads=32, words=WORDS)
tokens = torch.randint(WORDS, (batch, PROMPT), device="cuda")
caches = [[] for _ in range(layers)]
times = []
with torch.inference_mode():
    for position in range(positions - 1):
        start = time.monotonic()
        answer = net(tokens[:, position:position + 1], caches)
        if position + 1 >= PROMPT:
            tokens = torch.cat((tokens, answer[:, -1].argmax(1, keepdim=True)), 1)
        wait()
        times.append((time.monotonic() - start) * 1e3)
rows = tokens.tolist()
for row in rows[:ROWS]:
    print(*row)
print(hashlib.sha256(repr(rows).encode()).hexdigest())
tell_times(times[len(times) // 2:], peak_mib())

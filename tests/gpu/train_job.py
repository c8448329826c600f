"""A training step in PyTorch, unmodified: a transformer of 24 layers, width 2,048, sequences of 512, bf16, SGD.

usage: train_job.py BATCH STEPS

Standard output is the losses, one a line, digit for digit: they must not depend on where memory is. Standard error: `NAME VALUE`
lines (ms a step without the first, its least and most, peak in MiB by PyTorch's own account), and `step N MS` as it goes.
"""
import sys
import time

from job_times import tell_step, tell_times, wait_for_turn
from torch_model import functional, model, peak_mib, torch, wait

batch, steps = int(sys.argv[1]), int(sys.argv[2])
LENGTH, WORDS = 512, 4096

wait_for_turn()
net = model(layers=24, width=2048, heads=16, words=WORDS)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
tokens = torch.randint(WORDS, (batch, LENGTH + 1), device="cuda")
times = []
for _ in range(steps):
    start = time.monotonic()
    optimizer.zero_grad(set_to_none=True)
    answer = net(tokens[:, :-1])
    loss = functional.cross_entropy(answer.float().flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    wait()
    times.append((time.monotonic() - start) * 1e3)
    if not torch.isfinite(loss):
        sys.exit(f"train_job.py: a loss of {loss.item()} compares with nothing")
    print(f"{loss.item():.9g}", flush=True)
    tell_step(len(times) - 1, times[-1])
tell_times(times[1:] or times, peak_mib())

"""PyTorch with CUDA graphs, unmodified: ten layers of 4,096 by 16,384 and back, bfloat16, 1,024 rows.

usage: captured_job.py train|compiled STEPS

train: a whole training step by SGD with momentum, captured as one graph. compiled: a forward pass by torch.compile with
mode="reduce-overhead", which captures graphs by itself. Standard output is the loss or a sum, one a line, digit for digit: it must not
depend on where memory is. Standard error: as of train_job.py.
"""
import sys
import time

import torch
from job_times import tell_step, tell_times, wait_for_turn
from torch import nn
from torch_model import deterministic

WIDTH, INNER, LAYERS, ROWS = 4096, 16384, 10, 1024
kind, steps = sys.argv[1], int(sys.argv[2])


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.widens, self.narrows = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return x + self.narrows(nn.functional.gelu(self.widens(self.norm(x))))


def captured_step(net, x, y):
    """A function that replays a training step and returns its loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = ((net(x) - y) ** 2).float().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss.item()

    return replay


def compiled_pass(net, x):
    fast = torch.compile(net, mode="reduce-overhead")

    def forward():
        torch.compiler.cudagraph_mark_step_begin()
        with torch.inference_mode():
            return fast(x).double().abs().sum().item()

    return forward


wait_for_turn()
deterministic()
with torch.device("cuda"):
    network = nn.Sequential(*(Layer() for _ in range(LAYERS))).to(torch.bfloat16)
    rows, goal = (torch.randn(ROWS, WIDTH, dtype=torch.bfloat16) for _ in range(2))
run = captured_step(network, rows, goal) if kind == "train" else compiled_pass(network, rows)
times = []
for number in range(steps):
    start = time.monotonic()
    rows.add_(0.001)
    result = run()
    times.append((time.monotonic() - start) * 1e3)
    print(f"{result:.12g}", flush=True)
    tell_step(number, times[-1])
tell_times(times[1:] or times, torch.cuda.max_memory_allocated() >> 20)

"""A training step in PyTorch that loads much code late: a vision transformer with AdamW under autocast, unmodified.

usage: late_code_job.py MODE STEPS      MODE: one; two (half of the layers on each of two devices); ddp, fsdp (ranks of torchrun)

Standard output is the losses, one a line, digit for digit: they must not depend on where memory is. Of several ranks rank 0 prints.
Standard error: `ms` a step without the first, `peak` in MiB by PyTorch's own account on the current device.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed.fsdp
from torch import nn
from torch_model import Block, deterministic

mode, steps = sys.argv[1], int(sys.argv[2])
LAYERS, WIDTH, HEADS, IMAGE, PATCH, CLASSES, BATCH = 24, 1024, 16, 224, 16, 1000, 24


class Vision(nn.Module):
    def __init__(self, devices):
        super().__init__()
        self.first, self.last = devices[0], devices[-1]
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH).to(self.first)
        self.layers = nn.ModuleList(Block(WIDTH, HEADS).to(self.first if i < LAYERS // 2 else self.last) for i in range(LAYERS))
        self.head = nn.Linear(WIDTH, CLASSES).to(self.last)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        for i, layer in enumerate(self.layers):
            x = layer(x.to(self.last) if i == LAYERS // 2 else x)
        return self.head(x.mean(1))


deterministic()
ranks = mode in ("ddp", "fsdp")
rank = int(os.environ["LOCAL_RANK"]) if ranks else 0
devices = ["cuda:0", "cuda:1"] if mode == "two" else [f"cuda:{rank}"]
torch.cuda.set_device(devices[0])
net = Vision(devices)
if ranks:
    torch.distributed.init_process_group("nccl")
if mode == "ddp":
    net = nn.parallel.DistributedDataParallel(net, device_ids=[rank])
if mode == "fsdp":
    for module in (*net.layers, net):
        torch.distributed.fsdp.fully_shard(module)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
torch.manual_seed(7 + rank)
images = torch.randn(BATCH, 3, IMAGE, IMAGE, device=devices[0])
labels = torch.randint(CLASSES, (BATCH,), device=devices[-1])
times = []
for _ in range(steps):
    start = time.monotonic()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(images).float(), labels)
    loss.backward()
    optimizer.step()
    value = loss.item()
    torch.cuda.synchronize()
    times.append((time.monotonic() - start) * 1e3)
    if rank == 0:
        print(f"{value:.9g}", flush=True)
if rank == 0:
    peak = max(torch.cuda.max_memory_reserved(device) for device in devices) >> 20
    print(f"ms {statistics.median(times[1:] or times):.1f}\npeak {peak}", file=sys.stderr)
if ranks:
    torch.distributed.destroy_process_group()

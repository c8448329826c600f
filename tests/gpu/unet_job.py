"""A forward pass of a convolutional U-Net in PyTorch, unmodified: bf16, 2.6 G parameters, one picture of 1,280 by 1,280.

usage: unet_job.py STEPS

As networks that make pictures are: residual blocks of two convolutions on six levels of half the size and twice the width each,
on the way up with what the way down left on that level. About 5 GiB of weights, most of them where the picture is small, and as
much of feature maps, most where it is large. Standard output is a checksum a forward pass: it must not depend on where memory is.
Standard error: see run_steps.
"""
import sys

from job_times import wait_for_turn
from torch_model import deterministic, functional, nn, run_steps, torch

steps = int(sys.argv[1])
WIDTHS, BLOCKS, CHANNELS, SIZE = (128, 256, 512, 1024, 2048, 4096), 2, 8, 1280


def conv(come, go, stride=1):
    return nn.Conv2d(come, go, 3, stride=stride, padding=1)


class Residual(nn.Module):
    def __init__(self, come, go):
        super().__init__()
        self.before, self.between = nn.GroupNorm(32, come), nn.GroupNorm(32, go)
        self.first, self.second = conv(come, go), conv(go, go)
        self.across = nn.Identity() if come == go else nn.Conv2d(come, go, 1)

    def forward(self, x):
        inner = self.first(functional.silu(self.before(x), inplace=True))
        inner = self.second(functional.silu(self.between(inner), inplace=True))
        return inner.add_(self.across(x))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        pairs = list(zip(WIDTHS, WIDTHS[1:]))
        self.enter, self.leave = conv(CHANNELS, WIDTHS[0]), conv(WIDTHS[0], CHANNELS)
        self.down = nn.ModuleList(nn.ModuleList(Residual(width, width) for _ in range(BLOCKS)) for width in WIDTHS)
        self.smaller = nn.ModuleList(conv(wide, narrow, stride=2) for wide, narrow in pairs)
        self.middle = Residual(WIDTHS[-1], WIDTHS[-1])
        self.up = nn.ModuleList(nn.ModuleList(Residual(2 * width, width) for _ in range(BLOCKS)) for width in WIDTHS[::-1])
        self.larger = nn.ModuleList(conv(narrow, wide) for wide, narrow in pairs[::-1])

    def forward(self, x):
        kept = []
        x = self.enter(x)
        for level, blocks in enumerate(self.down):
            x = self.smaller[level - 1](x) if level else x
            for block in blocks:
                x = block(x)
                kept.append(x)
        x = self.middle(x)
        for level, blocks in enumerate(self.up):
            x = self.larger[level - 1](functional.interpolate(x, scale_factor=2.0, mode="nearest")) if level else x
            for block in blocks:
                x = block(torch.cat((x, kept.pop()), 1))
        return self.leave(x)


wait_for_turn()
deterministic()
torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    net = UNet()
    picture = torch.randn(1, CHANNELS, SIZE, SIZE)
with torch.no_grad():
    run_steps(steps, lambda: net(picture))

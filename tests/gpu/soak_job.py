"""PyTorch for a long time with more memory than its device limit: random sizes, streams, graphs, training. All data are checked.

usage: soak_job.py SECONDS MIB SEED      MIB: what is held at most in tensors whose content is known

Prints `quiet ROUND STEPS` after each round, when nothing is held any more, and goes on at the next line of standard input. Ends with
`done STEPS`, or with a message and status 1 at the first wrong byte.
"""
import gc
import random
import sys
import time

from torch_model import deterministic, functional, model, torch, wait

LARGEST, STREAMS, CHURN, ROUND = 512 << 20, 3, 60, 12


def pattern(words, seed):
    """Of that many words of 8 bytes."""
    return torch.arange(words, device="cuda").mul_(2 * seed + 1).add_(seed << 40)


class Tensors:
    """Tensors of known content, made, copied, read and freed at random, on several streams."""

    def __init__(self, chance, most):
        self.chance, self.most, self.held, self.streams = chance, most, [], [torch.cuda.Stream() for _ in range(STREAMS)]

    def bytes(self):
        return sum(tensor.nbytes for tensor, _, _ in self.held)

    def size(self):
        """Words of 8 bytes; each power of two from 4 KiB on is as likely."""
        return min(int(4096 * 2 ** (17 * self.chance.random())), LARGEST) // 8

    def step(self):
        stream = self.chance.choice(self.streams)
        what = self.chance.random()
        if self.bytes() > self.most or (what < 0.25 and self.held):
            self.held.pop(self.chance.randrange(len(self.held)))
        elif what < 0.7 or not self.held:
            words, seed = self.size(), self.chance.randrange(1 << 20)
            with torch.cuda.stream(stream):
                self.held.append((pattern(words, seed), seed, stream))
        elif what < 0.8:
            self.copy(stream)
        else:
            self.check(self.chance.choice(self.held))

    def copy(self, stream):
        """By another stream than the one that made it: an event orders them, and PyTorch is told."""
        tensor, seed, made = self.chance.choice(self.held)
        stream.wait_stream(made)
        with torch.cuda.stream(stream):
            twin = tensor.clone()
        tensor.record_stream(stream)
        self.held.append((twin, seed, stream))

    def check(self, one):
        tensor, seed, made = one
        with torch.cuda.stream(made):
            if not torch.equal(tensor, pattern(tensor.numel(), seed)):
                sys.exit(f"soak_job.py: a tensor of {tensor.nbytes} bytes has other content than seed {seed}")

    def check_all(self):
        for one in self.held:
            self.check(one)


def graph(tensors, chance):
    """A graph that is replayed while tensors come and go gives what the same work gave before."""
    come = torch.randn(2048, 2048, device="cuda")
    weights = [torch.randn(2048, 2048, device="cuda").mul_(2048 ** -0.5) for _ in range(8)]

    def work():
        x = come
        for weight in weights:
            x = functional.gelu(x @ weight)
        return x

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        expected = work()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        answer = work()
    for _ in range(chance.randrange(2, 8)):
        tensors.step()
        captured.replay()
        if not torch.equal(answer, expected):
            sys.exit("soak_job.py: a graph gave another answer")


LOSSES = {}


def train(tensors, chance):
    """Training from the same start gives the same losses, whatever is held beside it."""
    layers, batch = chance.choice(((4, 4), (8, 2), (12, 1)))
    torch.manual_seed(layers)
    net = model(layers=layers, width=1024, heads=16, words=4096)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    words = torch.randint(4096, (batch, 257), device="cuda")
    losses = []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(net(words[:, :-1]).float().flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        tensors.step()
        losses.append(loss.item())
    if LOSSES.setdefault((layers, batch), losses) != losses:
        sys.exit(f"soak_job.py: other losses: {losses} and {LOSSES[layers, batch]}")


def main():
    seconds, mib, seed = (int(word) for word in sys.argv[1:4])
    deterministic()
    chance, until, steps, rounds = random.Random(seed), time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        tensors = Tensors(chance, mib << 20)
        end = time.monotonic() + ROUND
        while time.monotonic() < end:
            for _ in range(CHURN):
                tensors.step()
            chance.choice((graph, train))(tensors, chance)
            steps += 1
        wait()
        tensors.check_all()
        tensors = None
        gc.collect()
        wait()
        torch.cuda.empty_cache()
        rounds += 1
        print("quiet", rounds, steps, flush=True)
        sys.stdin.readline()
    print("done", steps, flush=True)


main()

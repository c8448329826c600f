"""What the PyTorch jobs share: a transformer, plain PyTorch, bf16, seeded, and as deterministic as PyTorch can be asked to be."""
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch, "Reproducibility": before the first cuBLAS handle
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from job_times import tell_step  # noqa: E402

SEED = 20261121


def deterministic():
    torch.manual_seed(SEED)
    torch.use_deterministic_algorithms(True)  # with warn_only, attention's backward of cuDNN differs from run to run
    torch.utils.deterministic.fill_uninitialized_memory = False  # only costs here: nothing is read that was not written


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x, cache=None):
        """`cache`: [keys, values] of the positions so far, or None to train on whole sequences. It grows by one allocation each."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query, key, value = (part.reshape(shape).transpose(1, 2)
                             for part in self.qkv(self.before_attention(x)).split(width, 2))
        if cache is not None:
            if cache:
                key, value = torch.cat((cache[0], key), 2), torch.cat((cache[1], value), 2)
            cache[:] = key, value
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.before_mlp(x))))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads, words):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.end = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, caches=None):
        x = self.words(tokens)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i])
        return self.head(self.end(x))


def model(layers, width, heads, words):
    """On the device from the start, so that its memory is asked for as it is used."""
    deterministic()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return Transformer(layers, width, heads, words)


def wait():
    torch.cuda.synchronize()


def peak_mib():
    """0 with a pluggable allocator, of which PyTorch has no figures."""
    try:
        return torch.cuda.max_memory_allocated() >> 20
    except RuntimeError:
        return 0


def checksum(tensor):
    """The sum of its bits, taken as words of 8 bytes, modulo 2^64: exact whatever the order. Nothing is copied for it."""
    return tensor.view(torch.int64).sum().item()


FIRST = 3  # steps that are told and not counted: caches fill, and who watches learns


def run_steps(steps, work):
    """
    Calls `work` so often. Standard output: the checksum of each answer; all must be the same. Standard error: what each took
    until the device was idle, and `NAME VALUE` lines at the end: ms (median), least, most, peak and needs in MiB. peak is by
    PyTorch's own account, needs is what is in use on the device in the end, contexts and what libraries took included: of this
    process if the device is used by nobody else. What PyTorch has taken it keeps, so the end is the most.
    """
    times, sums = [], []
    for number in range(steps):
        start = time.monotonic()
        answer = work()
        wait()
        times.append((time.monotonic() - start) * 1e3)
        if not torch.isfinite(answer.sum(dtype=torch.float32)):
            sys.exit("an answer that is not finite compares with nothing")
        sums.append(checksum(answer))
        print(sums[-1], flush=True)
        tell_step(number, times[-1])
    if len(set(sums)) != 1:
        sys.exit("the answers of the steps differ")
    free, total = torch.cuda.mem_get_info()
    counted = times[FIRST:] or times[-1:]
    print(f"ms {statistics.median(counted):.2f}\nleast {min(counted):.2f}\nmost {max(counted):.2f}\npeak {peak_mib()}\n"
          f"needs {(total - free) >> 20}", file=sys.stderr)

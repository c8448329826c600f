"""An ordinary PyTorch program: a language model writes tokens. It knows nothing of libspill.

usage: tutorial_job.py LAYERS TOKENS [WIDTH [ROWS]]      4,096 wide and 16 rows at a time if not told

A layer has, in bf16, 384 MiB of weights that each token reads whole, and a table of 80 MiB of which each token reads one row,
as models with embeddings for each layer have it. Its cache of keys and values grows by 32 MiB every 128 tokens.

Standard output: the first tokens of the first row, and a hash of all of all rows. Standard error: how it gets on.
"""
import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch, "Reproducibility"
import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

LAYERS, TOKENS, WIDTH, ROWS = (int(word) for word in (sys.argv[1:] + ["4096", "16"][len(sys.argv) - 3:]))
WORDS, HEADS, BLOCK = 32768, 32, 128
TABLE = WIDTH * 5 // 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def weight(rows, columns):
    return torch.empty(rows, columns, dtype=torch.bfloat16, device=DEVICE).normal_(0, columns ** -0.5)


def normal(x):
    return functional.layer_norm(x, x.shape[-1:])


class Layer:
    def __init__(self):
        self.table = weight(WORDS, TABLE)
        self.qkv, self.out = weight(3 * WIDTH, WIDTH), weight(WIDTH, WIDTH)
        self.up, self.down = weight(4 * WIDTH, WIDTH), weight(WIDTH, 4 * WIDTH)
        self.keys, self.values = [], []  # blocks of the cache, BLOCK tokens each

    def remember(self, position, key, value):
        for blocks, new in (self.keys, key), (self.values, value):
            if position % BLOCK == 0:
                blocks.append(torch.zeros(ROWS, HEADS, BLOCK, WIDTH // HEADS, dtype=torch.bfloat16, device=DEVICE))
            blocks[-1][:, :, position % BLOCK] = new[:, :, 0]

    def attend(self, position, x):
        query, key, value = (part.view(ROWS, HEADS, 1, -1) for part in functional.linear(normal(x), self.qkv).split(WIDTH, -1))
        self.remember(position, key, value)
        scores = torch.cat([query @ block.transpose(-1, -2) for block in self.keys], -1)[..., :position + 1]
        weights = functional.pad((scores * (WIDTH // HEADS) ** -0.5).softmax(-1), (0, len(self.keys) * BLOCK - position - 1))
        mixed = sum(part @ block for part, block in zip(weights.split(BLOCK, -1), self.values))
        return functional.linear(mixed.reshape(ROWS, WIDTH), self.out)

    def forward(self, position, x, tokens):
        x = x + functional.pad(self.table[tokens], (0, WIDTH - TABLE))
        x = x + self.attend(position, x)
        return x + functional.linear(functional.gelu(functional.linear(normal(x), self.up)), self.down)


def tell(text):
    print(text, file=sys.stderr, flush=True)


@torch.inference_mode()
def main():
    torch.manual_seed(20261121)
    words = weight(WORDS, WIDTH)
    layers = [Layer() for _ in range(LAYERS)]
    tokens = torch.randint(WORDS, (ROWS,), device=DEVICE)
    tell(f"{LAYERS} layers loaded")
    written, start = [], time.monotonic()
    for position in range(TOKENS):
        x = words[tokens]
        for layer in layers:
            x = layer.forward(position, x, tokens)
        chances = functional.linear(normal(x), words).float().softmax(-1)
        tokens = (chances / torch.empty_like(chances).exponential_()).argmax(-1)
        written.append(tokens.tolist())
        if (position + 1) % BLOCK == 0:
            tell(f"{position + 1} tokens, the last {BLOCK} in {(time.monotonic() - start) * 1e3 / BLOCK:.1f} ms each")
            start = time.monotonic()
    print(*(rows[0] for rows in written[:16]))
    print(hashlib.sha256(repr(written).encode()).hexdigest())
    if DEVICE == "cuda":
        free, total = torch.cuda.mem_get_info()
        tell(f"{(total - free) >> 20} MiB of the device are in use")


main()

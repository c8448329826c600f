"""
Writes a model for llama.cpp: random weights in Q8_0, about 7 B, and words that mean nothing.

usage: llama_model.py GGUF_PY FILE dense|experts    GGUF_PY: the folder gguf-py of a llama.cpp tree; its writer needs numpy

dense: 7.04 GiB, all read for each token. experts: 7.3 GiB, of which a token reads 4 of 32 experts a layer.
"""
import array
import math
import random
import struct
import sys

GGUF_PY, FILE, KIND = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, GGUF_PY)
import gguf  # noqa: E402
import numpy  # noqa: E402

WIDTH, HEADS, KEY_HEADS, WORDS = 4096, 32, 8, 32000
LAYERS, HIDDEN, EXPERTS, USED = {"dense": (32, 14336, 0, 0), "experts": (16, 1024, 32, 4)}[KIND]
CONTEXT = 32768
VALUES, BLOCK = 32, 34  # values and bytes of a block of Q8_0: a scale of half precision, then a byte for each value
SCALE = struct.pack("<e", 0.0003)  # so small that no product overflows
BLOCKS = 65536  # different ones; they repeat
KEYS = WIDTH * KEY_HEADS // HEADS
INNER = {"ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}
if EXPERTS:
    INNER = {f"{name}_exps": (EXPERTS, *shape) for name, shape in INNER.items()}
LAYER = {"attn_q": (WIDTH, WIDTH), "attn_k": (KEYS, WIDTH), "attn_v": (KEYS, WIDTH), "attn_output": (WIDTH, WIDTH), **INNER}
LARGEST = max(math.prod(shape) for shape in (*LAYER.values(), (WORDS, WIDTH))) // VALUES


def random_blocks():
    """As many as the largest tensor needs from any of the different blocks on."""
    blocks = bytearray(random.Random(1).randbytes(BLOCKS * BLOCK))
    for i, byte in enumerate(SCALE):
        blocks[i::BLOCK] = bytes([byte]) * BLOCKS
    return bytes(blocks) * (LARGEST // BLOCKS + 2)


class Model:
    """Its tensors are views of the same bytes, from different blocks on: 7 GiB are in the file only."""

    def __init__(self, writer):
        self.writer, self.count = writer, 0
        self.blocks = numpy.frombuffer(random_blocks(), dtype=numpy.uint8)
        self.ones = numpy.frombuffer(array.array("f", [1.0]) * WIDTH, dtype=numpy.float32)

    def weights(self, name, *shape):
        start = self.count * 4099 % BLOCKS * BLOCK
        shape = (*shape[:-1], shape[-1] // VALUES * BLOCK)
        tensor = self.blocks[start:start + math.prod(shape)].reshape(shape)
        self.writer.add_tensor(f"{name}.weight", tensor, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        self.count += 1

    def norm(self, name):
        self.writer.add_tensor(f"{name}.weight", self.ones)

    def router(self, name):
        """What chooses the experts of a token: so different for each that tokens choose different ones."""
        chances = numpy.random.default_rng(self.count).standard_normal((EXPERTS, WIDTH), dtype=numpy.float32)
        self.writer.add_tensor(f"{name}.weight", chances)


def describe_words(writer):
    """A server needs them: what a tokenizer of that kind must have, then a name for each number."""
    kinds = gguf.TokenType
    words = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    words += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    words += [(f" {number}", kinds.NORMAL) for number in range(len(words), WORDS)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([word.replace(" ", "\u2581") for word, _ in words])
    writer.add_token_scores([-float(number) for number in range(WORDS)])
    writer.add_token_types([kind for _, kind in words])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def describe(writer):
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    if EXPERTS:
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(USED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(WORDS)
    describe_words(writer)
    writer.add_file_type(7)  # mostly Q8_0


def main():
    writer = gguf.GGUFWriter(FILE, "llama")
    describe(writer)
    model = Model(writer)
    model.weights("token_embd", WORDS, WIDTH)
    model.norm("output_norm")
    model.weights("output", WORDS, WIDTH)
    for layer in range(LAYERS):
        model.norm(f"blk.{layer}.attn_norm")
        model.norm(f"blk.{layer}.ffn_norm")
        if EXPERTS:
            model.router(f"blk.{layer}.ffn_gate_inp")
        for name, shape in LAYER.items():
            model.weights(f"blk.{layer}.{name}", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()

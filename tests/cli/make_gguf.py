#!/usr/bin/env python3
"""Writes small models in the GGUF format by hand, with holes for weights: make_gguf.py FILE KEY=VALUE…
layers, layer_mib, output_mib, embedding_mib; first, last (layers in this part), keys (empty: none but the count of tensors);
version, tensors, keycount, arraylen, dims, heads: lies. empty: so many empty strings in a last key, as a hole; weights=no: the file
ends where they begin."""
import struct
import sys


def build(layers=1, layer_mib=1, output_mib=0, embedding_mib=1, first=0, last=None, keys="all", version=3, tensors=None,
          keycount=None, arraylen=None, dims=2, heads=8, empty=0):
    def string(text):
        return struct.pack("<Q", len(text)) + text.encode()

    def number(key, value):
        return string(key) + (struct.pack("<IQ", 10, value) if value >= 1 << 32 else struct.pack("<II", 4, value))

    words = ["a", "tokenizer", "of some words"]
    table = [string("general.architecture") + struct.pack("<I", 8) + string("llama"),
             number("llama.block_count", int(layers)), number("llama.embedding_length", 1024),
             number("llama.attention.head_count", int(heads)), number("llama.rope.dimension_count", 128),
             string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, int(arraylen or len(words))) + b"".join(map(string, words)),
             string("tokenizer.ggml.scores") + struct.pack("<IIQ3f", 9, 6, 3, 0, 1, 2),
             string("general.file_type") + struct.pack("<IB", 7, 1)] if keys else []
    if int(empty):
        table.append(string("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, int(empty)))
    sizes = [("token_embd.weight", int(embedding_mib))] if first in (0, "0") else []
    many = min(int(layers), 64)
    # Names out of order, as their sizes are by their offsets.
    sizes += [(f"blk.{i}.ffn_up.weight", int(layer_mib)) for i in reversed(range(int(first), int(last or many)))]
    sizes += [("output.weight", int(output_mib))] if int(output_mib) else []
    infos, at = [], 0
    for name, mib in sizes:
        infos.append(string(name) + struct.pack("<IQQIQ", int(dims), 1024, 512, 1, at))
        at += mib << 20
    head = b"GGUF" + struct.pack("<IQQ", int(version), int(tensors or len(infos)), int(keycount or len(table)))
    head += b"".join(table)
    end = len(head) + 8 * int(empty) + sum(map(len, infos))
    return head, 8 * int(empty), b"".join(infos[::-1]) + bytes(-end % 32), at


path, *words = sys.argv[1:]
words = dict(word.split("=", 1) for word in words)
weights = words.pop("weights", "yes") == "yes"
head, hole, tail, data = build(**words)
with open(path, "wb") as out:
    out.write(head)
    out.seek(hole, 1)
    out.write(tail)
    out.truncate(out.tell() + data * weights)

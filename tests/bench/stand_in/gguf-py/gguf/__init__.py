"""Stands in for the package gguf of llama.cpp: its writer writes, as JSON, what it was told, and no weights."""
import enum
import json
import pathlib


class GGMLQuantizationType(enum.IntEnum):
    Q8_0 = 8


class TokenType(enum.IntEnum):
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    BYTE = 6


class GGUFWriter:
    def __init__(self, path, architecture):
        self.path, self.steps = pathlib.Path(path), []
        self.told = {"architecture": architecture, "keys": {}, "tensors": {}}

    def __getattr__(self, name):
        """add_KEY of one value; the steps of writing, which have none."""
        if name.startswith("add_"):
            return lambda value: self.told["keys"].update({name[4:]: value})
        return lambda: self.steps.append(name)

    def add_tensor(self, name, tensor, raw_dtype=None):
        if name in self.told["tensors"]:
            raise ValueError(f"{name} is there twice")
        scales = None if raw_dtype is None else sorted({bytes(tensor.view[at:at + 2]).hex() for at in range(0, 34000, 34)})
        self.told["tensors"][name] = {"shape": tensor.shape, "bytes": tensor.nbytes, "type": raw_dtype, "scales": scales}

    def close(self):
        if self.steps != ["write_header_to_file", "write_kv_data_to_file", "write_tensors_to_file"]:
            raise RuntimeError(f"the steps were {self.steps}")
        self.path.write_text(json.dumps(self.told), encoding="utf-8")

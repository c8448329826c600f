"""Stands in for numpy, as far as llama_model.py uses it: arrays of rows that are views of bytes."""
import array
import math

uint8, float32 = "B", "f"


class Array:
    def __init__(self, view, shape):
        self.view, self.shape = view, shape

    @property
    def nbytes(self):
        return self.view.nbytes

    def __getitem__(self, part):
        view = self.view[part]
        return Array(view, (len(view),))

    def reshape(self, shape):
        if math.prod(shape) != len(self.view):
            raise ValueError(f"{len(self.view)} values are not of shape {shape}")
        return Array(self.view, shape)


def frombuffer(data, dtype):
    view = memoryview(data).cast("B").cast(dtype)
    return Array(view, (len(view),))


class random:  # numpy calls it so
    class default_rng:
        def __init__(self, seed):
            self.seed = seed

        def standard_normal(self, shape, dtype):
            values = array.array(dtype, [float(self.seed)]) * math.prod(shape)
            return Array(memoryview(values), shape)

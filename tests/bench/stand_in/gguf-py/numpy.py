"""Stands in for numpy, as far as llama_model.py uses it: arrays of rows that are views of bytes."""
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

    def reshape(self, rows, columns):
        if rows * columns != len(self.view):
            raise ValueError(f"{len(self.view)} values are not {rows} rows of {columns}")
        return Array(self.view, (rows, columns))


def frombuffer(data, dtype):
    view = memoryview(data).cast("B").cast(dtype)
    return Array(view, (len(view),))

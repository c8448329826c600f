"""Allocates by the CUDA runtime, as a framework does: its native code has released the GIL.

python_job.py RUNTIME: six blocks of 4 MiB, in a method: called by other functions, by a generator, and in a thread.
"""
import ctypes
import sys
import threading

runtime = ctypes.CDLL(sys.argv[1])


class Model:
    def __init__(self):
        self.blocks = []

    def take(self):
        block = ctypes.c_void_p()
        result = runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4 << 20))
        self.blocks.append(block)
        return result

    def forward(self):
        return [self.take() for _ in range(1)] + [(lambda: self.take())()]

    def steps(self):
        yield self.take()


def main():
    model = Model()
    results = model.forward() + model.forward() + list(model.steps())
    thread = threading.Thread(target=lambda: results.append(model.take()))
    thread.start()
    thread.join()
    print(results)


main()

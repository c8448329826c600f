"""nvml.c in Python: NVML and CUDA by ctypes, which is how pynvml reaches NVML. `copy=PATH`: one more NVML, which is the
one that is asked then."""
import ctypes
import os
import sys

MIB = 1 << 20
SECOND = 40 | 2 << 24  # nvmlMemory_v2


class First(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Second(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


def told(answer):
    return " ".join(str(getattr(answer, name)) for name, *_ in answer._fields_)


class Job:
    def __init__(self, words):
        # By its path, and after the other: the loader takes a library for the same by its name.
        libraries = [ctypes.CDLL(path) for path in ["libnvidia-ml.so.1", *(word[5:] for word in words if word.startswith("copy="))]]
        for self.nvml in libraries:
            self.nvml.nvmlInitWithFlags(0)
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def handle(self, index):
        handle = ctypes.c_void_p()
        if self.nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
            sys.exit(1)
        return handle

    def start(self, device=None):
        context = ctypes.c_void_p()
        result = self.cuda.cuInit(0)
        if device is None:
            return result
        return result or self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or self.cuda.cuCtxSetCurrent(context)

    def first(self, index):
        answer = First(77, 77, 77)
        return f"{self.nvml.nvmlDeviceGetMemoryInfo(self.handle(index), ctypes.byref(answer))} {told(answer)}"

    def second(self, index, version=SECOND):
        answer = Second(version, 77, 77, 77, 77)
        return f"{self.nvml.nvmlDeviceGetMemoryInfo_v2(self.handle(index), ctypes.byref(answer))} {told(answer)}"

    def odd(self):
        answer = First(77, 77, 77)
        return (f"{self.nvml.nvmlDeviceGetMemoryInfo(self.handle(0), None)} {self.nvml.nvmlDeviceGetMemoryInfo_v2(self.handle(0), None)} "
                f"{self.nvml.nvmlDeviceGetMemoryInfo(None, ctypes.byref(answer))} {answer.total}")

    def asked(self):
        free, total = ctypes.c_size_t(77), ctypes.c_size_t(77)
        return f"{self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))} {free.value} {total.value}"

    def child(self, index):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return None
        print(f"child:{index} {self.first(index)}", flush=True)
        return os._exit(0)

    def take(self, mib):
        return self.cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_ulonglong()), ctypes.c_size_t(mib * MIB))

    def run(self, word):
        name, _, number = word.partition(":")
        functions = {"init": self.start, "device": self.start, "alloc": self.take, "cuda": self.asked, "first": self.first,
                     "second": self.second, "later": lambda index: self.second(index, SECOND + 1), "odd": self.odd, "child": self.child}
        return functions[name](*([int(number)] if number else []))


def main():
    job = Job(sys.argv[1:])
    for word in sys.argv[1:]:
        if not word.startswith("copy="):
            line = job.run(word)
            if line is not None:
                print(word, line, flush=True)


main()

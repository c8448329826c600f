"""Spilled memory and the end of its context, by the CUDA runtime and by the driver, through ctypes.

Run under libspill with a small device limit. Prints free device memory before and after, in MiB.
"""
import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")


def must(result):
    if result:
        raise SystemExit(f"error {result}")


def runtime_malloc(size):
    pointer = ctypes.c_void_p()
    must(runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
    must(runtime.cudaMemset(pointer, 1, ctypes.c_size_t(size)))
    return pointer


def driver_alloc(size):
    pointer = ctypes.c_uint64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)))
    must(cuda.cuMemsetD8_v2(pointer, 1, ctypes.c_size_t(size)))
    return pointer


def free_mib():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    return free.value // MIB


must(runtime.cudaFree(None))
before = free_mib()
for _ in range(3):
    for size in (4096, 600 * MIB, 600 * MIB, 4096):
        runtime_malloc(size)
    must(runtime.cudaDeviceReset())
must(runtime.cudaFree(None))
print(f"reset: {before} and {free_mib()} MiB free")
for _ in range(3):
    context = ctypes.c_void_p()
    must(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
    for size in (4096, 600 * MIB, 600 * MIB, 4096):
        driver_alloc(size)
    must(cuda.cuCtxDestroy_v2(context))
print(f"destroy: {before} and {free_mib()} MiB free")

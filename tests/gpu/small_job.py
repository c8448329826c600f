"""10,000 allocations of 4 KiB through the driver, none of them on the device; prints by how many MiB MemAvailable fell."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def available_kib():
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        return next(int(line.split()[1]) for line in meminfo if line.startswith("MemAvailable"))


context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
before = available_kib()
for _ in range(10000):
    if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096)):
        raise SystemExit("an allocation failed")
print((before - available_kib()) // 1024)

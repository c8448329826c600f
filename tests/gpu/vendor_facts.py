"""What the real driver does, without libspill: the facts of docs/measurements.md that the code follows, as assertions.

Those about pools, captures and errors are in vendor_facts_*.py.
"""
import ctypes

from vendor import MIB, byref, call, free_bytes, made, must, stream, tried, u64


def new_context():
    return made("cuCtxCreate_v2", 0, 0)


def address(base, version):
    found, status = ctypes.c_void_p(), ctypes.c_int()
    must("cuGetProcAddress_v2", base, byref(found), version, 1, byref(status))
    return found.value


must("cuInit", 0)
context = new_context()

assert tried("cuMemAlloc_v2", 1 << 60) == (2, 0)
print("an out of memory writes 0 to *dptr")

before = free_bytes()
for _ in range(64):
    made("cuMemAlloc_v2", MIB + 1)
assert before - free_bytes() == 128 * MIB, before - free_bytes()
before = free_bytes()
for _ in range(64):
    made("cuMemAlloc_v2", MIB)
assert before - free_bytes() == 64 * MIB, before - free_bytes()
print("64 of 1 MiB + 1 take 128 MiB, 64 of 1 MiB take 64")

host, managed = made("cuMemHostAlloc", 4 * MIB, 3), made("cuMemAllocManaged", 4 * MIB, 1)
must("cuCtxDestroy_v2", context)
context = new_context()
assert call("cuMemFreeHost", host) == 1 and call("cuMemFree_v2", managed) == 1
print("the end of a context frees its portable pinned and managed memory")

for base in (b"cuDevicePrimaryCtxRelease", b"cuDevicePrimaryCtxReset"):
    assert address(base, 7000) != address(base, 11000)
print("the primary-context calls at version 7000 are other functions than _v2")

captured, graph, pointer = stream(), u64(), made("cuMemAlloc_v2", 4 * MIB)
must("cuStreamBeginCapture_v2", captured, 2)
assert call("cuMemFree_v2", pointer) == 0
must("cuStreamEndCapture", captured, byref(graph))
must("cuStreamBeginCapture_v2", captured, 2)
assert call("cuCtxSynchronize") == 900
assert call("cuStreamEndCapture", captured, byref(graph)) == 901
print("in a relaxed capture a plain free is fine, and cuCtxSynchronize breaks the capture")

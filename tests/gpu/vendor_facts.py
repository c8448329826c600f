"""What the real driver does, without libspill: the facts of docs/measurements.md that the code follows, as assertions."""
import ctypes

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")
size_t, u64, void_p, byref = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p, ctypes.byref


def must(result):
    assert result == 0, result


def new_context():
    context = void_p()
    must(cuda.cuCtxCreate_v2(byref(context), 0, 0))
    return context


def free_bytes():
    free, total = size_t(), size_t()
    must(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value


def address(base, version):
    found, status = void_p(), ctypes.c_int()
    must(cuda.cuGetProcAddress_v2(base, byref(found), version, u64(1), byref(status)))
    return found.value


must(cuda.cuInit(0))
context = new_context()

pointer = u64(1)
assert cuda.cuMemAlloc_v2(byref(pointer), size_t(1 << 60)) == 2 and pointer.value == 0
print("an out of memory writes 0 to *dptr")

before = free_bytes()
for _ in range(64):
    must(cuda.cuMemAlloc_v2(byref(pointer), size_t(MIB + 1)))
assert before - free_bytes() == 128 * MIB, before - free_bytes()
before = free_bytes()
for _ in range(64):
    must(cuda.cuMemAlloc_v2(byref(pointer), size_t(MIB)))
assert before - free_bytes() == 64 * MIB, before - free_bytes()
print("64 of 1 MiB + 1 take 128 MiB, 64 of 1 MiB take 64")

host, managed = void_p(), u64()
must(cuda.cuMemHostAlloc(byref(host), size_t(4 * MIB), 3))
must(cuda.cuMemAllocManaged(byref(managed), size_t(4 * MIB), 1))
must(cuda.cuCtxDestroy_v2(context))
context = new_context()
assert cuda.cuMemFreeHost(host) == 1 and cuda.cuMemFree_v2(managed) == 1
print("the end of a context frees its portable pinned and managed memory")

for base in (b"cuDevicePrimaryCtxRelease", b"cuDevicePrimaryCtxReset"):
    assert address(base, 7000) != address(base, 11000)
print("the primary-context calls at version 7000 are other functions than _v2")

stream, graph = void_p(), void_p()
must(cuda.cuStreamCreate(byref(stream), 1))
must(cuda.cuMemAlloc_v2(byref(pointer), size_t(4 * MIB)))
must(cuda.cuStreamBeginCapture_v2(stream, 2))
assert cuda.cuMemFree_v2(pointer) == 0
must(cuda.cuStreamEndCapture(stream, byref(graph)))
must(cuda.cuStreamBeginCapture_v2(stream, 2))
assert cuda.cuCtxSynchronize() == 900
assert cuda.cuStreamEndCapture(stream, byref(graph)) == 901
print("in a relaxed capture a plain free is fine, and cuCtxSynchronize breaks the capture")

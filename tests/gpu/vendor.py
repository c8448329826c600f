"""The driver through ctypes, without libspill and without the toolkit: what the vendor_facts files share.

Every integer goes as 64 bits, which is right for every integer or pointer argument of the ABIs that CUDA has on Linux.
"""
import ctypes
import signal
import struct

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2  # modes of a capture
PINNED, MANAGED = 1, 2  # kinds of allocation of a pool
DEVICE, HOST, HOST_NUMA = 1, 2, 3  # kinds of location
RELEASE_THRESHOLD, RESERVED, USED = 4, 5, 7  # attributes of a pool
KEEP = (1 << 64) - 1
u64, byref = ctypes.c_uint64, ctypes.byref
driver = ctypes.CDLL("libcuda.so.1")
signal.alarm(120)  # a call that waits where none may ends the file instead of hanging it


def call(name, *arguments):
    """The result code of driver function `name`."""
    return getattr(driver, name)(*(u64(a) if isinstance(a, int) else a for a in arguments))


def must(name, *arguments):
    result = call(name, *arguments)
    assert result == 0, f"{name}: {result}"


def made(name, *arguments):
    """What a function writes through its first argument; it must succeed."""
    out = u64()
    must(name, byref(out), *arguments)
    return out.value


def tried(name, *arguments):
    """The result, and what is then behind the first argument, which was 0x55 before."""
    out = u64(0x55)
    return call(name, byref(out), *arguments), out.value


def same(found, expected, what):
    assert found == expected, f"{what}: {found}, expected {expected}"


def start():
    """The primary context, current."""
    must("cuInit", 0)
    context = made("cuDevicePrimaryCtxRetain", 0)
    must("cuCtxSetCurrent", context)
    return context


def stream():
    return made("cuStreamCreate", 1)


def free_bytes():
    free, total = u64(), u64()
    must("cuMemGetInfo_v2", byref(free), byref(total))
    return free.value


def pool(kind, location, handles=0):
    properties = struct.pack("<iiiiQQH54x", kind, handles, location, 0, 0, 0, 0)
    return tried("cuMemPoolCreate", properties)


def device_access(handle):
    return call("cuMemPoolSetAccess", handle, struct.pack("<iii", DEVICE, 0, 3), 1)


def usable_pool(kind, location):
    result, handle = pool(kind, location)
    assert result == 0 and device_access(handle) == 0, result
    return handle


def pool_value(handle, attribute):
    value = u64()
    must("cuMemPoolGetAttribute", handle, attribute, byref(value))
    return value.value


def keep(handle):
    must("cuMemPoolSetAttribute", handle, RELEASE_THRESHOLD, byref(u64(KEEP)))


def properties_of_handle(location, handles=0, rdma=0, compression=0, usage=0):
    return struct.pack("<iiiiQBBH4x", PINNED, handles, location, 0, 0, compression, rdma, usage)


def mapped(location, size):
    """A handle there, mapped for the device: (pointer, handle)."""
    pointer = made("cuMemAddressReserve", size, 0, 0, 0)
    handle = made("cuMemCreate", size, properties_of_handle(location), 0)
    must("cuMemMap", pointer, size, 0, handle, 0)
    must("cuMemSetAccess", pointer, size, struct.pack("<iii", DEVICE, 0, 3), 1)
    return pointer, handle


def pointer_value(attribute, pointer):
    """(result, value) of a pointer attribute of at most 8 bytes."""
    value = u64()
    return call("cuPointerGetAttribute", byref(value), attribute, pointer), value.value


class Held:
    """A stream in which nothing that comes behind runs while the block does."""

    def __init__(self, on):
        self.on, self.word = on, made("cuMemHostAlloc", 4096, 2)

    def __enter__(self):
        ctypes.c_uint32.from_address(self.word).value = 0
        must("cuStreamWaitValue32_v2", self.on, made("cuMemHostGetDevicePointer_v2", self.word, 0), 1, 1)

    def __exit__(self, *_):
        ctypes.c_uint32.from_address(self.word).value = 1


def fill_device(leave):
    """Plain allocations that take all but about `leave` bytes."""
    taken, step = [], 16 * GIB
    while step >= 64 * MIB:
        if free_bytes() < leave + step:
            step //= 2
        else:
            taken.append(made("cuMemAlloc_v2", step))
    return taken


def give_back(pointers):
    for pointer in pointers:
        must("cuMemFree_v2", pointer)

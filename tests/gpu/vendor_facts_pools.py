"""What the driver's memory pools do: which kind of pool can hold spilled memory, what gives it back, what it answers."""
import ctypes
import time

from vendor import (DEVICE, GIB, HOST_NUMA, MANAGED, MIB, PINNED, RESERVED, USED, Held, byref, call, device_access,
                    fill_device, free_bytes, give_back, keep, made, mapped, must, pointer_value, pool, pool_value,
                    properties_of_handle, same, start, stream, tried, usable_pool)

CONTEXT, TYPE, MANAGED_POINTER, LEGACY_IPC, RANGE_START, RANGE_SIZE, MEMPOOL = 1, 2, 8, 10, 11, 12, 17

start()
first, second = stream(), stream()
default = made("cuDeviceGetDefaultMemPool", 0)


def copies(pointer):
    """Results of the copy calls that a program makes with device memory."""
    plain, host = made("cuMemAlloc_v2", MIB), ctypes.create_string_buffer(4096)
    results = [call("cuMemcpyHtoD_v2", pointer, host, 4096), call("cuMemcpyDtoH_v2", host, pointer, 4096),
               call("cuMemcpyDtoD_v2", plain, pointer, 4096), call("cuMemcpyDtoD_v2", pointer, plain, 4096)]
    must("cuMemFree_v2", plain)
    return results


result, pinned = pool(PINNED, HOST_NUMA)
same(result, 0, "a pinned pool on host")
pointer = made("cuMemAllocFromPoolAsync", MIB, pinned, first)
same(call("cuMemsetD8Async", pointer, 1, MIB, first), 1, "memset before the pool's access is set")
same(device_access(pinned), 0, "access")
same(call("cuMemsetD8Async", pointer, 1, MIB, first), 0, "memset after")
same(copies(pointer), [1, 1, 1, 1], "copies of a pinned host pool's memory")
same(pointer_value(TYPE, pointer), (0, 1), "its memory type")
print("memory of a pinned host pool is no device memory: copies fail, its type is host; access must be set")

managed = usable_pool(MANAGED, HOST_NUMA)
before = free_bytes()
pointer = made("cuMemAllocFromPoolAsync", 64 * MIB, managed, first)
must("cuMemsetD8Async", pointer, 5, 64 * MIB, first)
must("cuStreamSynchronize", first)
same(free_bytes(), before, "free device memory after the device wrote to it")
same(copies(pointer), [0, 0, 0, 0], "copies of its memory")
same([pointer_value(what, pointer) for what in (CONTEXT, TYPE, MANAGED_POINTER, LEGACY_IPC, RANGE_START, RANGE_SIZE)],
     [(0, 0), (0, 2), (0, 1), (0, 0), (0, pointer), (0, 64 * MIB)], "its attributes")
same(pointer_value(MEMPOOL, pointer), (0, managed), "its pool")
print("memory of a managed pool on host stays there when the device writes it, and every copy call takes it")

for handle in (managed, pinned, default):
    pointers = [made("cuMemAllocFromPoolAsync", 1, handle, first) for _ in range(3)]
    same({pointer % 512 for pointer in pointers}, {0}, "alignment")
    for pointer in pointers:
        must("cuMemFreeAsync", pointer, first)
print("pool pointers are aligned to 512 bytes")

must("cuMemFreeAsync", made("cuMemAllocAsync", GIB, first), first)
must("cuStreamSynchronize", first)
same(pool_value(default, RESERVED), 0, "reserved after a free at threshold 0")
pointer, used = made("cuMemAllocAsync", GIB, first), pool_value(default, USED)
must("cuStreamSynchronize", first)
same(call("cuMemFree_v2", pointer), 0, "cuMemFree_v2 of a pool pointer")
same((pool_value(default, RESERVED), pool_value(default, USED)), (0, used), "reserved and used after it")
print("cuMemFree_v2 of pool memory gives it back at once, and the pool's used figure never falls by it")

keep(default)
pointer = made("cuMemAllocAsync", GIB, first)
must("cuStreamSynchronize", first)
with Held(first):
    must("cuMemsetD8Async", pointer, 1, MIB, first)
    must("cuMemFree_v2", pointer)  # would hang if it waited
must("cuStreamSynchronize", first)
same(pool_value(default, RESERVED), GIB, "reserved")
must("cuMemPoolTrimTo", default, 0)
same(pool_value(default, RESERVED), 0, "reserved after a trim")
print("cuMemFree_v2 of pool memory waits for nothing; a trim gives back what was kept")


context, mark, other_stream = ctypes.c_void_p(), made("cuEventCreate", 2), stream()
must("cuCtxGetCurrent", byref(context))


def waited_behind(on):
    """What counts as a wait of the host behind a free in that stream, by name. None of them waits for long: all work is done."""
    must("cuEventRecord", mark, on)
    return {"cuStreamSynchronize": lambda: must("cuStreamSynchronize", on), "cuEventSynchronize": lambda: must("cuEventSynchronize", mark),
            "cuCtxSynchronize": lambda: must("cuCtxSynchronize")}


def looks():
    """What does not count."""
    general = made("cuEventCreate", 2)
    must("cuCtxRecordEvent", context, general)
    for name, handle in (("cuEventQuery", mark), ("cuEventQuery", general), ("cuStreamQuery", first), ("cuStreamQuery", 0)):
        same(call(name, handle), 0, name)
    for name, handle in (("cuEventSynchronize", general), ("cuStreamSynchronize", other_stream)):
        must(name, handle)
    must("cuMemFree_v2", made("cuMemAlloc_v2", 4 * MIB))


for on in (first, 0):
    for way in ("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"):
        pointer = made("cuMemAllocAsync", GIB, on)
        must("cuCtxSynchronize")
        must("cuMemFreeAsync", pointer, on)
        wait = waited_behind(on)[way]
        time.sleep(0.1)
        looks()
        must("cuMemPoolTrimTo", default, 0)
        same(pool_value(default, RESERVED), GIB, f"reserved, trimmed before {way}")
        wait()
        must("cuMemPoolTrimTo", default, 0)
        same(pool_value(default, RESERVED), 0, f"reserved, trimmed behind {way}")
print("a trim gives back what was freed in stream order only when the host has waited behind the free")


def taken_back(what, ask, end):
    """Does `ask` for 4 GiB succeed when the device is full but for 8 GiB that the default pool keeps unused?"""
    must("cuMemFreeAsync", made("cuMemAllocAsync", 8 * GIB, first), first)
    must("cuStreamSynchronize", first)
    taken = fill_device(600 * MIB)
    result, value = ask()
    give_back(taken)
    same((result, pool_value(default, RESERVED) < 8 * GIB), (0, True), f"{what} with memory kept by a pool")
    end(value)
    must("cuMemPoolTrimTo", default, 0)


other = usable_pool(PINNED, DEVICE)
taken_back("cuMemAlloc_v2", lambda: tried("cuMemAlloc_v2", 4 * GIB), lambda p: must("cuMemFree_v2", p))
taken_back("another pool", lambda: tried("cuMemAllocFromPoolAsync", 4 * GIB, other, first),
           lambda p: must("cuMemFreeAsync", p, first))
must("cuStreamSynchronize", first)
taken_back("cuMemCreate", lambda: tried("cuMemCreate", 4 * GIB, properties_of_handle(DEVICE), 0),
           lambda handle: must("cuMemRelease", handle))
print("the driver itself takes back what a pool keeps unused, for cuMemAlloc, cuMemCreate and other pools")

pointer = made("cuMemAllocAsync", 8 * GIB, first)
must("cuStreamSynchronize", first)
taken, extra = fill_device(600 * MIB), made("cuMemAllocAsync", MIB, second)
with Held(first):
    must("cuMemFreeAsync", pointer, first)
    same(tried("cuMemAlloc_v2", 4 * GIB), (2, 0), "cuMemAlloc_v2 before the stream has reached a free")
must("cuStreamSynchronize", first)
again = made("cuMemAlloc_v2", 4 * GIB)
give_back([*taken, again, extra])
print("it does not wait for a stream to reach a free")

memory = {name: made("cuMemAllocFromPoolAsync", MIB, handle, first)
          for name, handle in (("managed", managed), ("default", default), ("other", other))}
chunk, handle = mapped(DEVICE, 2 * MIB)
for pointer in (*memory.values(), chunk):
    must("cuMemsetD8Async", pointer, 7, MIB, first)
must("cuStreamSynchronize", first)
must("cuDevicePrimaryCtxReset_v2", 0)
start()
byte = ctypes.c_uint8()
for pointer in (*memory.values(), chunk):
    must("cuMemcpyDtoH_v2", byref(byte), pointer, 1)
    same(byte.value, 7, "data after the reset of the primary context")
for pointer in memory.values():
    must("cuMemFree_v2", pointer)
must("cuMemUnmap", chunk, 2 * MIB)
must("cuMemRelease", handle)
print("pool memory and mapped memory outlive the reset of a context")

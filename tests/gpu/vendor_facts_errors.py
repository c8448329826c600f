"""What the driver answers to odd arguments, to frees of what another call made, and to questions about mapped memory."""
import ctypes
import struct

from vendor import (DEVICE, GIB, HOST_NUMA, MIB, byref, call, made, mapped, must, pointer_value, properties_of_handle, same,
                    start, stream, tried, u64)

INVALID, NO_MEMORY, UNSUPPORTED = 1, 2, 801
HUGE, LARGEST = 1 << 40, (1 << 64) - 1
POSIX_FD, DMA_BUF, SYNC_MEMOPS = 1, 1, 6

start()
on = stream()

for arguments, expected in (((0,), (INVALID, 0)), ((HUGE,), (NO_MEMORY, 0)), ((LARGEST,), (NO_MEMORY, 0))):
    same(tried("cuMemAlloc_v2", *arguments), expected, f"cuMemAlloc_v2{arguments}")
for arguments, expected in (((0, on), (0, 0)), ((HUGE, on), (NO_MEMORY, 0)), ((LARGEST, on), (NO_MEMORY, 0))):
    same(tried("cuMemAllocAsync", *arguments), expected, f"cuMemAllocAsync{arguments}")
same(tried("cuMemAllocManaged", 0, 1), (INVALID, 0), "cuMemAllocManaged of nothing")
same(tried("cuMemHostAlloc", 0, 0), (0, 0), "cuMemHostAlloc of nothing")
same(tried("cuMemHostAlloc", 1 << 46, 0), (NO_MEMORY, 0), "cuMemHostAlloc of too much")
for name in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc"):
    same(call(name, None, MIB, on if name.endswith("Async") else 0), INVALID, f"{name} without a place for the pointer")
print("cuMemAllocAsync of no bytes succeeds with NULL, cuMemAlloc does not; an out of memory writes NULL")


def pitched(width, height, element):
    """(result, pointer or 0, pitch)"""
    pointer, pitch = u64(0x55), u64(0x66)
    result = call("cuMemAllocPitch_v2", byref(pointer), byref(pitch), width, height, element)
    if result == 0:
        must("cuMemFree_v2", pointer)
    return result, 0 if result == 0 else pointer.value, pitch.value


for width, pitch in ((1, 512), (100, 512), (512, 512), (513, 1024), (5000, 5120)):
    for element in (4, 8, 16):
        same(pitched(width, 7, element), (0, 0, pitch), f"a pitch of {width} bytes")
for arguments in ((0, 7, 4), (100, 0, 4), (100, 7, 0), (100, 7, 1), (100, 7, 3), (100, 7, 32), (LARGEST, 1, 4)):
    same(pitched(*arguments), (INVALID, 0, 0), f"cuMemAllocPitch_v2{arguments}")
same(pitched(MIB, MIB, 4), (NO_MEMORY, 0, MIB), "cuMemAllocPitch_v2 beyond memory")
same(pitched(HUGE, HUGE, 4), (INVALID, 0, HUGE), "cuMemAllocPitch_v2 beyond 64 bits")
print("a pitch is the width rounded up to 512; elements are of 4, 8 or 16 bytes; without memory the pitch is still written")

device, host = properties_of_handle(DEVICE), properties_of_handle(HOST_NUMA)
for size, properties, expected in ((HUGE, device, NO_MEMORY), (16 * HUGE, host, NO_MEMORY), (MIB, device, INVALID),
                                   (3 * MIB, host, INVALID), (0, device, INVALID),
                                   (2 * MIB, properties_of_handle(HOST_NUMA, rdma=1), INVALID),
                                   (2 * MIB, properties_of_handle(HOST_NUMA, compression=1), INVALID)):
    same(tried("cuMemCreate", size, properties, 0), (expected, 0x55), f"cuMemCreate of {size}")
print("cuMemCreate leaves the handle untouched when it fails; host handles have no RDMA and no compression")

plain, asynchronous = made("cuMemAlloc_v2", 4 * MIB), made("cuMemAllocAsync", MIB, on)
managed, pinned = made("cuMemAllocManaged", 4 * MIB, 1), made("cuMemHostAlloc", 4 * MIB, 3)
on_device, device_handle = mapped(DEVICE, 4 * MIB)
on_host, host_handle = mapped(HOST_NUMA, 4 * MIB)
must("cuStreamSynchronize", on)
refused = dict.fromkeys((0x1234567000, on_device, on_host, pinned, plain + 512, asynchronous + 512), INVALID)
for pointer, result in {**refused, 0: 0}.items():
    same(call("cuMemFreeAsync", pointer, on), result, f"cuMemFreeAsync of {pointer:x}")
    same(call("cuMemFree_v2", pointer), result, f"cuMemFree_v2 of {pointer:x}")
same(call("cuMemFreeAsync", managed, on), UNSUPPORTED, "cuMemFreeAsync of managed memory")
for name, pointer in (("cuMemFreeAsync", made("cuMemAlloc_v2", MIB)), ("cuMemFree_v2", made("cuMemAllocAsync", MIB, on))):
    arguments = (on,) if name.endswith("Async") else ()
    same(call(name, pointer, *arguments), 0, f"{name} of the other's memory")
    must("cuStreamSynchronize", on)
    same(call(name, pointer, *arguments), INVALID, f"{name} of it again")
print("cuMemFreeAsync frees plain memory and cuMemFree stream-ordered memory; neither frees mapped or pinned memory")


def answers(pointer):
    """Memory type, and the results of: SYNC_MEMOPS, an IPC handle, a DMA buffer, the allocation handle."""
    one, ipc, descriptor, handle = ctypes.c_uint(1), ctypes.create_string_buffer(64), ctypes.c_int(), u64()
    return (pointer_value(2, pointer)[1], call("cuPointerSetAttribute", byref(one), SYNC_MEMOPS, pointer),
            call("cuIpcGetMemHandle", ipc, pointer),
            call("cuMemGetHandleForAddressRange", byref(descriptor), pointer, 2 * MIB, DMA_BUF, 0),
            call("cuMemRetainAllocationHandle", byref(handle), pointer))


for name, pointer, expected in (("plain", plain, (2, 0, 0, 0, INVALID)),
                                ("mapped on the device", on_device, (2, UNSUPPORTED, INVALID, 0, 0)),
                                ("mapped on host", on_host, (1, UNSUPPORTED, INVALID, INVALID, 0)),
                                ("pinned", pinned, (1, 0, INVALID, INVALID, INVALID)),
                                ("managed", managed, (2, 0, INVALID, INVALID, INVALID))):
    same(answers(pointer), expected, f"{name} memory: type, SYNC_MEMOPS, IPC, DMA buffer, retain")
ordered = answers(asynchronous)
same((*ordered[:3], ordered[4]), (2, 0, INVALID, INVALID), "stream-ordered memory")  # its DMA buffer depends on where it is
print("IPC is for plain memory only; SYNC_MEMOPS is not for mapped memory; DMA buffers are for device memory only")

for location, handle in ((DEVICE, device_handle), (HOST_NUMA, host_handle)):
    properties, descriptor = ctypes.create_string_buffer(32), ctypes.c_int(-5)
    must("cuMemGetAllocationPropertiesFromHandle", properties, handle)
    same(struct.unpack_from("<iiii", properties), (1, 0, location, 0), "the properties of a handle")
    same((call("cuMemExportToShareableHandle", byref(descriptor), handle, POSIX_FD, 0), descriptor.value), (INVALID, -5),
         "the export of a handle made without types")
    shared = made("cuMemCreate", 2 * MIB, properties_of_handle(location, POSIX_FD), 0)
    must("cuMemExportToShareableHandle", byref(descriptor), shared, POSIX_FD, 0)
print("a handle on host says so, and is exported only if made for it")

retained = made("cuMemRetainAllocationHandle", on_host + 4096)
same(retained, host_handle, "the handle of an interior pointer")
must("cuMemRelease", retained)
must("cuMemRelease", host_handle)
later = [made("cuMemCreate", 2 * MIB, device, 0) for _ in range(8)]
assert host_handle not in later, later
same(made("cuMemRetainAllocationHandle", on_host), host_handle, "the handle of what is released but mapped")
same([call("cuMemMap", made("cuMemAddressReserve", 2 * MIB, 0, 0, 0), 2 * MIB, 2 * MIB, device_handle, 0),
      call("cuMemUnmap", on_device, 2 * MIB)], [UNSUPPORTED, INVALID], "map and unmap of a part")
print("a released handle that is still mapped keeps its value; handles are mapped and unmapped whole")

total, seen, array = u64(), u64(), struct.pack("<QQiI", 32768, 32768, 0x20, 4)
must("cuDeviceTotalMem_v2", byref(total), 0)
must("cuMemGetInfo_v2", byref(u64()), byref(seen))
same(total.value, seen.value, "the device's memory")
held = [made("cuMemAlloc_v2", GIB)]
while not (last := tried("cuMemAlloc_v2", 16 * GIB))[0]:
    held.append(last[1])
same(tried("cuArrayCreate_v2", array), (NO_MEMORY, 0x55), "an array beyond memory")
for pointer in held:
    must("cuMemFree_v2", pointer)
print("an array beyond memory leaves the handle untouched; cuDeviceTotalMem and cuMemGetInfo give the same total")

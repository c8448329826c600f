"""What the driver allows while a stream is captured, and what it does with memory nodes of graphs.

A call is `unsafe` (the driver's word: it fails and breaks a capture that forbids unsafe calls to its thread), `fine` in
every mode from every thread, or `fatal` in all of them.
"""
import ctypes
import struct
import threading

from vendor import (DEVICE, GIB, GLOBAL, HOST_NUMA, MANAGED, MIB, PINNED, RELAXED, RESERVED, THREAD_LOCAL, byref, call,
                    fill_device, free_bytes, give_back, made, mapped, must, same, start, stream, tried, u64, usable_pool)

IMPLICIT, UNSUPPORTED, INVALIDATED = 906, 900, 901
LEGACY = 1  # the stream
ALLOC_NODE, FREE_NODE = 10, 11

context = start()
other = stream()
own_pool = usable_pool(PINNED, DEVICE)
default = made("cuDeviceGetDefaultMemPool", 0)
plain = made("cuMemAlloc_v2", 4 * MIB)
event = made("cuEventCreate", 2)
must("cuEventRecord", event, other)


def map_new():
    pointer, handle = mapped(DEVICE, 2 * MIB)
    must("cuMemUnmap", pointer, 2 * MIB)
    return call("cuMemRelease", handle)


def ask_and_free(*allocation):
    result, pointer = tried(*allocation)
    return result or call("cuMemFree_v2", pointer)


def record_new_event():
    new = made("cuEventCreate", 2)
    result = call("cuEventRecord", new, other)
    must("cuEventDestroy_v2", new)
    return result


CALLS = {
    "cuMemAlloc, cuMemFree": ("unsafe", lambda _: ask_and_free("cuMemAlloc_v2", MIB)),
    "cuMemAlloc beyond memory": ("unsafe", lambda _: tried("cuMemAlloc_v2", 1 << 40)[0] - 2),
    "cuMemAllocManaged": ("unsafe", lambda _: ask_and_free("cuMemAllocManaged", MIB, 1)),
    "cuMemPoolTrimTo": ("unsafe", lambda _: call("cuMemPoolTrimTo", own_pool, 0)),
    "cuMemPoolGetAttribute": ("unsafe", lambda _: call("cuMemPoolGetAttribute", own_pool, RESERVED, byref(u64()))),
    "cuMemAllocAsync elsewhere": ("unsafe", lambda _: ask_and_free("cuMemAllocAsync", MIB, other)),
    "cuEventQuery": ("unsafe", lambda _: call("cuEventQuery", event)),
    "cuStreamSynchronize elsewhere": ("unsafe", lambda _: call("cuStreamSynchronize", other)),
    "cuMemGetInfo": ("fine", lambda _: free_bytes() == 0),
    "map, unmap and release": ("fine", lambda _: map_new()),
    "event create, record elsewhere, destroy": ("fine", lambda _: record_new_event()),
    "cuPointerGetAttribute": ("fine", lambda _: call("cuPointerGetAttribute", byref(u64()), 2, plain)),
    "cuCtxSynchronize": ("fatal", lambda _: call("cuCtxSynchronize")),
    "cuStreamSynchronize": ("fatal", lambda captured: call("cuStreamSynchronize", captured)),
}


def in_thread(work):
    def run():
        must("cuCtxSetCurrent", context)
        results.append(work())
    results = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def relaxed(work):
    mode = ctypes.c_int(RELAXED)
    must("cuThreadExchangeStreamCaptureMode", byref(mode))
    try:
        return work()
    finally:
        must("cuThreadExchangeStreamCaptureMode", byref(mode))


def capture(on, mode, work):
    """(what work gives, result of the end of the capture, nodes)"""
    must("cuStreamBeginCapture_v2", on, mode)
    result, graph, count = work(), u64(), u64()
    end = call("cuStreamEndCapture", on, byref(graph))
    if end == 0:
        must("cuGraphGetNodes", graph, None, byref(count))
        must("cuGraphDestroy", graph)
    return result, end, count.value


stream_of_capture = stream()
for name, (kind, ask) in CALLS.items():
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        for where, forbidden in ((lambda work: work(), mode != RELAXED), (in_thread, mode == GLOBAL),
                                 (relaxed, False), (lambda work: in_thread(lambda: relaxed(work)), False)):
            result, end, _ = capture(stream_of_capture, mode, lambda: where(lambda: ask(stream_of_capture)))
            broken = kind == "fatal" or (kind == "unsafe" and forbidden)
            same((result != 0, end), (broken, INVALIDATED if broken else 0), f"{name} in mode {mode}")
print("in a capture: mapping, unmapping, recording events elsewhere and questions are fine; allocations, trims, waits and "
      "event queries need a relaxed thread; cuCtxSynchronize never")

blocking = made("cuStreamCreate", 0)
status = ctypes.c_int(9)
same(capture(blocking, RELAXED, lambda: call("cuStreamIsCapturing", LEGACY, byref(status)))[:2], (IMPLICIT, 0),
     "the question whether the legacy stream is captured")
same(capture(blocking, RELAXED, lambda: call("cuEventRecord", event, LEGACY))[:2], (IMPLICIT, INVALIDATED), "a use of it")
print("while a blocking stream is captured, a use of the legacy stream breaks that; cuStreamIsCapturing tells, harmlessly")

must("cuStreamBeginCapture_v2", stream_of_capture, GLOBAL)
must("cuStreamDestroy_v2", stream_of_capture)
must("cuMemFree_v2", made("cuMemAlloc_v2", MIB))
print("the destruction of a stream ends its capture")

captured, ordinary, host = stream(), made("cuMemAllocAsync", MIB, other), usable_pool(MANAGED, HOST_NUMA)
must("cuStreamSynchronize", other)
cases = {"beyond memory": (lambda: tried("cuMemAllocAsync", 1 << 40, captured), (2, 0)),
         "of no bytes": (lambda: tried("cuMemAllocAsync", 0, captured), (0, 0)),
         "from a pool on host": (lambda: tried("cuMemAllocFromPoolAsync", MIB, host, captured), (801, 0))}
for name, (ask, expected) in cases.items():
    same(capture(captured, RELAXED, ask), (expected, 0, 0), f"captured cuMemAllocAsync {name}")
for pointer in (plain, ordinary):
    same(capture(captured, RELAXED, lambda: call("cuMemFreeAsync", pointer, captured)), (1, 0, 0), "captured free")
print("captured allocations that fail and frees of what no graph made leave the capture whole and empty")


def allocation_node(graph, location, size):
    """(result, pointer)"""
    parameters = ctypes.create_string_buffer(struct.pack("<iiiiQQH54xQQQQ", PINNED, 0, location, 0, 0, 0, 0, 0, 0, size, 0))
    result = call("cuGraphAddMemAllocNode", byref(u64()), graph, None, 0, parameters)
    return result, struct.unpack_from("<Q", parameters, 112)[0]


def graph_of(size):
    graph = made("cuGraphCreate", 0)
    result, pointer = allocation_node(graph, DEVICE, size)
    same(result, 0, "an allocation node")
    return graph, made("cuGraphInstantiateWithFlags", graph, 0), pointer


def graph_reserved():
    value = u64()
    must("cuDeviceGetGraphMemAttribute", 0, 2, byref(value))
    return value.value


graph = made("cuGraphCreate", 0)
same(allocation_node(graph, HOST_NUMA, MIB)[0], 801, "an allocation node on host")
same(allocation_node(graph, DEVICE, 1 << 40)[0], 2, "an allocation node larger than the device")
graph, ready, pointer = graph_of(512 * MIB)
same(graph_reserved(), 0, "graph memory before a launch")
must("cuGraphLaunch", ready, other)
must("cuMemFreeAsync", pointer, other)
must("cuStreamSynchronize", other)
must("cuGraphExecDestroy", ready)
must("cuGraphDestroy", graph)
same(graph_reserved(), 512 * MIB, "graph memory after all of it is gone")
must("cuDeviceGraphMemTrim", 0)
same(graph_reserved(), 0, "graph memory after a trim")
print("graphs take their memory at the first launch, on the device only, and only a trim gives it back")

graph, ready, pointer = graph_of(8 * GIB)
must("cuGraphLaunch", ready, other)
must("cuMemFreeAsync", pointer, other)
must("cuStreamSynchronize", other)
taken = fill_device(600 * MIB)
taken.append(made("cuMemAlloc_v2", 4 * GIB))
same(graph_reserved() < 8 * GIB, True, "graph memory taken back")
give_back(taken)
must("cuDeviceGraphMemTrim", 0)
print("the driver itself takes back what graphs keep unused")

taken = fill_device(600 * MIB)
graph, ready, pointer = graph_of(4 * GIB)
same(call("cuGraphLaunch", ready, other), 2, "a launch beyond memory")
must("cuStreamSynchronize", other)
must("cuDeviceGraphMemTrim", 0)
same(graph_reserved() > 0, True, "what the failed launch had taken")
give_back(taken)
must("cuGraphLaunch", ready, other)
must("cuStreamSynchronize", other)
print("a launch beyond memory fails, keeps what it took, and succeeds once there is room")

"""A sum over devices as inference servers make it: each process opens the others' buffers and reads them in a kernel.

usage: reduce_job.py MIB FILL COUNT      each of COUNT processes hands a buffer of MIB to the others, and has FILL more

A process a device. The buffers come from cudaMalloc, and go to the others by cudaIpcGetMemHandle. Prints each process's sums.
"""
import ctypes
import multiprocessing
import sys

ROUNDS = 3
LAZY_PEER_ACCESS = 1


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_byte * 64)]


def run(rank, count, mib, fill, pipes, barrier):
    import cupy  # pylint: disable=import-outside-toplevel
    cupy.cuda.Device(rank).use()
    cudart = ctypes.CDLL("libcudart.so.13")

    def call(name, *arguments):
        result = getattr(cudart, name)(*arguments)
        if result:
            sys.exit(f"reduce_job.py: {name}: {result}")

    def buffer():
        pointer = ctypes.c_void_p()
        call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(mib << 20))
        return pointer.value

    def array(pointer):
        memory = cupy.cuda.UnownedMemory(pointer, mib << 20, None, rank)
        return cupy.ndarray((mib << 17,), cupy.int64, cupy.cuda.MemoryPointer(memory, 0))

    filled = [array(buffer()) for _ in range(fill)]
    for number, one in enumerate(filled):
        one[...] = number
    mine, handle = buffer(), Handle()
    call("cudaIpcGetMemHandle", ctypes.byref(handle), ctypes.c_void_p(mine))
    for other in range(count):
        pipes[other][1].send((rank, bytes(handle)))
    views = {}
    for _ in range(count):
        other, text = pipes[rank][0].recv()
        pointer = ctypes.c_void_p(mine)
        if other != rank:
            call("cudaIpcOpenMemHandle", ctypes.byref(pointer), Handle.from_buffer_copy(text), ctypes.c_uint(LAZY_PEER_ACCESS))
        views[other] = pointer.value
    for turn in range(ROUNDS):
        array(mine)[...] = cupy.arange(mib << 17) * (rank + 1) + turn
        cupy.cuda.Device().synchronize()
        barrier.wait(60)
        total = sum(array(views[other]) for other in range(count))
        cupy.cuda.Device().synchronize()
        expected = cupy.arange(mib << 17) * (count * (count + 1) // 2) + count * turn
        if not (total == expected).all():
            sys.exit(f"reduce_job.py: rank {rank} has a wrong sum")
        print(f"rank {rank}, turn {turn}: {int(total.sum())}", flush=True)
        barrier.wait(60)
    if any(int(one.min()) != number or int(one.max()) != number for number, one in enumerate(filled)):
        sys.exit(f"reduce_job.py: rank {rank} lost what it had")
    for other, pointer in views.items():
        if other != rank:
            call("cudaIpcCloseMemHandle", ctypes.c_void_p(pointer))
    barrier.wait(60)
    call("cudaFree", ctypes.c_void_p(mine))


def main():
    mib, fill, count = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    spawn = multiprocessing.get_context("spawn")
    pipes, barrier = [spawn.Pipe(False) for _ in range(count)], spawn.Barrier(count)
    ranks = [spawn.Process(target=run, args=(rank, count, mib, fill, pipes, barrier)) for rank in range(count)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(any(rank.exitcode for rank in ranks))


if __name__ == "__main__":
    main()

"""PyTorch tensors that another process reads and writes (torch.multiprocessing, CUDA IPC), unmodified.

usage: share_job.py MIB COUNT      COUNT tensors of MIB are made; the other process gets every third one

Prints a checksum of each tensor after the other process has changed those that it got. Ends with status 1 at a wrong byte.
"""
import sys

import torch
import torch.multiprocessing


def pattern(words, seed, device="cuda"):
    return torch.arange(words, device=device).mul_(2 * seed + 1).add_(seed << 40)


def other(queue, answers):
    """Verifies each tensor that comes, and turns its bits round. It has its context before the device is full."""
    torch.zeros(1, device="cuda")
    answers.put("ready")
    for seed, tensor in iter(queue.get, None):
        right = torch.equal(tensor, pattern(tensor.numel(), seed))
        tensor.bitwise_not_()
        torch.cuda.synchronize()
        del tensor
        answers.put((seed, right))
    answers.put(None)


def main():
    mib, count = int(sys.argv[1]), int(sys.argv[2])
    words = (mib << 20) // 8
    spawn = torch.multiprocessing.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    process = spawn.Process(target=other, args=(queue, answers))
    process.start()
    answers.get(timeout=60)
    tensors = [pattern(words, seed) for seed in range(count)]
    torch.cuda.synchronize()
    shared = range(0, count, 3)
    for seed in shared:
        queue.put((seed, tensors[seed]))
    for _ in shared:
        seed, right = answers.get(timeout=60)
        if not right:
            sys.exit(f"share_job.py: the other process read other content than that of seed {seed}")
    queue.put(None)
    process.join(60)
    for seed, tensor in enumerate(tensors):
        expected = pattern(words, seed)
        if not torch.equal(tensor, ~expected if seed in shared else expected):
            sys.exit(f"share_job.py: tensor {seed} has other content than it should")
        print(tensor.sum().item())
    sys.exit(process.exitcode)


if __name__ == "__main__":
    main()

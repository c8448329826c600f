"""PyTorch, unmodified, with more tensors than its device limit: job.py says what it does.

usage: torch_job.py MIB LIMIT_MIB [LIBRARY]      LIBRARY: libspill.so, as PyTorch's pluggable allocator
"""
import os
import sys

from job import Job

job = Job(int(sys.argv[1]), int(sys.argv[2]))
import torch  # noqa: E402  after the vendor's figure of the empty device

backend = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "native allocator")
if len(sys.argv) > 3:
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[3], "spill_malloc", "spill_free")
    torch.cuda.memory.change_current_allocator(pluggable)
    backend = "pluggable allocator"
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
job.started()
job.run(torch.arange(job.words, device="cuda", dtype=torch.int64), lambda _: torch.cuda.synchronize(),
        lambda tensor: tensor.cpu().numpy())
sys.exit(job.verdict(f"PyTorch {torch.__version__}, {backend}"))

"""Runs a PyTorch job with libspill as PyTorch's pluggable allocator.

usage: pluggable_job.py LIBRARY JOB [ARGUMENT]…      LIBRARY: libspill.so; preload it, too, so that memory can move
"""
import pathlib
import runpy
import sys

import torch

library, job = sys.argv[1:3]
torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(library, "spill_malloc", "spill_free"))
torch.cuda.max_memory_reserved = lambda device=None: 0  # no pluggable allocator has such a figure
sys.argv = sys.argv[2:]
sys.path.insert(0, str(pathlib.Path(job).parent))
runpy.run_path(job, run_name="__main__")

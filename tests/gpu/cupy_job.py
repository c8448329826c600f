"""CuPy, unmodified, with more arrays than its device limit: job.py says what it does.

usage: cupy_job.py MIB LIMIT_MIB default|async|managed      which of its pools
"""
import sys

from job import Job

job = Job(int(sys.argv[1]), int(sys.argv[2]))
import cupy  # noqa: E402  after the vendor's figure of the empty device

pool = sys.argv[3]
if pool == "async":
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
elif pool == "managed":
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
elif pool != "default":
    sys.exit(f"cupy_job.py: no pool is called {pool}")


def synchronize(_=None):
    cupy.cuda.Device().synchronize()


cupy.zeros(1).sum()
synchronize()
job.started()
job.run(cupy.arange(job.words, dtype=cupy.int64), synchronize, lambda array: array.get())
# Managed memory is the program's own wish, and moves as the vendor likes: the limit does not hold for it.
sys.exit(job.verdict(f"CuPy {cupy.__version__}, {pool} pool", figure=pool != "managed"))

"""JAX, unmodified, with more arrays than its device limit: job.py says what it does.

usage: jax_job.py MIB LIMIT_MIB      with XLA_PYTHON_CLIENT_PREALLOCATE and _ALLOCATOR in the environment
"""
import os
import sys

from job import Job

job = Job(int(sys.argv[1]), int(sys.argv[2]))
os.environ["JAX_ENABLE_X64"] = "1"
import jax  # noqa: E402  after the vendor's figure of the empty device
import jax.numpy  # noqa: E402
import numpy  # noqa: E402

if jax.default_backend() != "gpu":
    sys.exit("jax_job.py: JAX sees no GPU")
jax.block_until_ready(jax.numpy.zeros(1) + 1)
job.started()
job.run(jax.block_until_ready(jax.numpy.arange(job.words, dtype=jax.numpy.int64)), jax.block_until_ready, numpy.asarray)
allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "BFC allocator")
sys.exit(job.verdict(f"JAX {jax.__version__}, {allocator}"))

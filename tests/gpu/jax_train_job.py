"""A training step in JAX, unmodified: 32 dense layers of 5,120 by 5,120, float32, SGD with momentum, arguments donated.

usage: jax_train_job.py BATCH STEPS [DEVICES]      with XLA_PYTHON_CLIENT_PREALLOCATE and _ALLOCATOR in the environment

DEVICES (1): each has all weights and a part of the batch, and the gradients are summed over them.
About 3.1 GiB each of weights, momentum and gradients. Standard output is the losses, one a line, digit for digit: they must not
depend on where memory is. Standard error: as of train_job.py.
"""
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# The same sums in each run: no kernel is chosen by its time, none adds in the order in which its parts end.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")
import jax  # noqa: E402
from jax import numpy  # noqa: E402
from job_times import tell_step, tell_times, wait_for_turn  # noqa: E402

batch, steps = int(sys.argv[1]), int(sys.argv[2])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 1
LAYERS, WIDTH, RATE, MOMENTUM = 32, 5120, 1e-3, 0.9


def loss_of(weights, x, y):
    for weight in weights:
        x = x + jax.nn.gelu(x @ weight) / LAYERS
    return numpy.mean((x - y) ** 2)


@jax.jit
def make(key):
    return jax.random.normal(key, (WIDTH, WIDTH), numpy.float32) / WIDTH ** 0.5


def step(weights, moments, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    moments = [MOMENTUM * moment + gradient for moment, gradient in zip(moments, gradients)]
    return [weight - RATE * moment for weight, moment in zip(weights, moments)], moments, loss


wait_for_turn()
if jax.default_backend() != "gpu":
    sys.exit("jax_train_job.py: JAX sees no GPU")
mesh = jax.make_mesh((count,), ("batch",), devices=jax.devices()[:count])
everywhere, in_parts = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in ((), ("batch",)))
keys = jax.random.split(jax.random.key(20261123), LAYERS + 2)
weights = [jax.device_put(make(key), everywhere) for key in keys[:LAYERS]]
moments = [numpy.zeros_like(weight) for weight in weights]
x, y = (jax.device_put(jax.random.normal(key, (batch, WIDTH), numpy.float32), in_parts) for key in keys[LAYERS:])
step = jax.jit(step, donate_argnums=(0, 1))
times = []
for number in range(steps):
    start = time.monotonic()
    weights, moments, loss = step(weights, moments, x, y)
    jax.block_until_ready((weights, moments, loss))
    times.append((time.monotonic() - start) * 1e3)
    if not numpy.isfinite(loss):
        sys.exit(f"jax_train_job.py: a loss of {loss} compares with nothing")
    print(f"{float(loss):.9g}", flush=True)
    tell_step(number, times[-1])
peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) >> 20
tell_times(times[1:] or times, peak)

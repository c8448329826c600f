"""Work of one framework whose submissions are counted twice, by libspill's gate and by CUPTI (count_activity.c).

usage: gate_job.py cublas|cudnn|triton|jax|cupy      prints the version of what it ran, and a value that depends on all of it
"""
import os
import sys

import numpy


def cublas():
    """Through PyTorch: products of several kinds, copies either way, sets, and a CUDA graph that is launched three times."""
    import torch
    total = 0.0
    for kind in (torch.bfloat16, torch.float32, torch.float64):
        a, b = torch.ones(512, 512, device="cuda", dtype=kind), torch.ones(512, 512, device="cuda", dtype=kind)
        total += (a @ b).sum().item() + torch.bmm(a.view(8, 64, 512), b.view(8, 512, 64)).sum().item()
        total += torch.nn.functional.linear(a, b, b[0]).relu().sum().item()
    pinned = torch.full((1 << 20,), 2.0, pin_memory=True)
    on_device = torch.empty(1 << 20, device="cuda")
    on_device.copy_(pinned, non_blocking=True)
    on_device[: 1 << 19].zero_()
    total += on_device.clone().cpu().sum().item()
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    a = torch.ones(256, 256, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        c = a @ a  # its workspace and handle exist before the capture
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        c = (a @ a) * 0.5
        d = c.clone()
    for _ in range(3):
        graph.replay()
    total += d.sum().item()
    torch.cuda.synchronize()
    return f"PyTorch {torch.__version__}, cuBLAS", total


def cudnn():
    """Through PyTorch: convolutions forth and back, normalisation, a recurrent layer."""
    import torch
    from torch import nn
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(8, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 5)).cuda()
    x = torch.randn(4, 8, 64, 64, device="cuda", requires_grad=True)
    loss = net(x).square().mean() + net(x.half().float()).abs().mean()
    loss.backward()
    recurrent = nn.LSTM(64, 128, 2).cuda()
    answer, _ = recurrent(torch.randn(16, 4, 64, device="cuda"))
    answer.sum().backward()
    torch.cuda.synchronize()
    return f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}", loss.item() + x.grad.sum().item()


def triton():
    import torch
    import triton_kernel
    import triton as package
    x = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
    for _ in range(5):
        x = triton_kernel.add(x, x)
    torch.cuda.synchronize()
    return f"Triton {package.__version__}", x.sum().item()


def jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax as package
    from jax import lax, numpy as jnp, random
    if package.default_backend() != "gpu":
        sys.exit("gate_job.py: JAX sees no GPU")
    key = random.key(1)
    a = random.normal(key, (512, 512))

    @package.jit
    def several(x):
        y = lax.scan(lambda carry, _: (jnp.tanh(carry @ x), None), x, None, length=8)[0]
        z = lax.conv(y.reshape(1, 1, 512, 512), jnp.ones((4, 1, 3, 3)), (1, 1), "SAME")
        return jnp.sort(z.reshape(-1)), y.sum()

    for _ in range(3):
        ordered, total = several(a)
    there = package.device_put(numpy.arange(1 << 20, dtype=numpy.float32))
    total = float(total) + float(numpy.asarray(ordered)[-1]) + float(numpy.asarray(there * 2).sum())
    return f"JAX {package.__version__}", total


def cupy():
    import cupy as package
    double = package.RawKernel("""extern "C" __global__ void twice(float *p, int n)
    { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] *= 2; }""", "twice")
    x = package.arange(1 << 16, dtype=package.float32)
    for _ in range(4):
        double((256,), (256,), (x, numpy.int32(x.size)))
    square = x.reshape(256, 256)
    total = float((square @ square.T).sum()) + float(package.fft.fft(x).real.sum())
    y = package.asarray(numpy.ones(1 << 16, dtype=numpy.float32))
    y[:100] = 0
    y.fill(3)
    z = package.zeros_like(y)
    z[...] = y
    total += float(package.sort(z + x).get()[-1])
    stream = package.cuda.Stream(non_blocking=True)
    with stream:
        w = package.empty_like(x)
        w.data.copy_from_device_async(x.data, x.nbytes, stream)
        w.data.memset_async(0, 1024, stream)
    stream.synchronize()
    package.cuda.Device().synchronize()
    return f"CuPy {package.__version__}", total + float(w.sum())


name, value = {job.__name__: job for job in (cublas, cudnn, triton, jax, cupy)}[sys.argv[1]]()
print(f"{name}: {value!r}")

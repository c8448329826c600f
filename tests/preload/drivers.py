"""The simulated driver of other versions, as tests/sim/meson.build makes them."""
import os
import pathlib

VERSIONS = ("11.4", "12.2", "12.4", "12.6", "12.8", "13.1")


def path_of(version, folder):
    """LD_LIBRARY_PATH with that driver in place of the usual one, by a link in a folder in `folder`."""
    usual = os.environ["SIM_PATH"]
    own = pathlib.Path(folder) / f"driver-{version}"
    if not own.exists():
        own.mkdir()
        (own / "libcuda.so.1").symlink_to(pathlib.Path(usual.split(":")[0]) / f"libcuda-{version}.so")
    return f"{own}:{usual}"

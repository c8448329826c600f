"""Real memory pressure: hog.c in a process of its own, for as long as a block runs."""
import os
import pathlib
import subprocess


class Hog:
    """`free_mib` is what it says it left. Ends with the block, whatever happens in it."""

    def __init__(self, build, leave_mib, library_path="", device=0):
        self.command = [str(pathlib.Path(build) / "tests/gpu/gpu_hog"), str(leave_mib)]
        self.environment = {**os.environ, "LD_LIBRARY_PATH": library_path or os.environ.get("LD_LIBRARY_PATH", ""),
                            "CUDA_VISIBLE_DEVICES": str(device)}

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=self.environment)
        self.said = self.process.stdout.readline().strip()
        if not self.said.startswith("ready"):
            self.__exit__()
            raise RuntimeError(f"hog: {self.said or 'could not take the memory'}")
        self.free_mib = int(self.said.split()[1])
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

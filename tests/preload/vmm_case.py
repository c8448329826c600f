"""Runs vmm.c, the program that makes, maps and releases its physical memory itself, on a device of 64 MiB."""
from harness import KERNELS, PROGRAMS, Case

INVALID, OOM, SUCCESS = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_SUCCESS"


class VmmCase(Case):
    usual: dict = {}

    def program(self, words, *, preload=True, **variables):
        return self.run_program([str(PROGRAMS / "vmm"), KERNELS, *words.split()], preload=preload, **{**self.usual, **variables})

    def good(self, words, **variables):
        return self.all_right(self.program(words, **variables))

    @staticmethod
    def results(done, word):
        """What each such word printed."""
        return [line.split()[1] for line in done.stdout.splitlines() if line.split()[0] == word]

    def kinds(self, kind):
        return [record for record in self.checked_records() if record["kind"] == kind]

    def places(self):
        return [record["place"] for record in self.kinds("alloc") if record["api"] == "cuMemCreate"]

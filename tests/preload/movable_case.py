"""Runs movable.c, the program whose memory may have to move, on a device of 64 MiB, and reads what it printed."""
from harness import KERNELS, PROGRAMS, Case, decided

OOM = "CUDA_ERROR_OUT_OF_MEMORY"
SUCCESS = "CUDA_SUCCESS"
# The reserve of all devices, and of the one that these programs use.
RESERVES = ("SPILL_DEVICE_RESERVE", "SPILL_DEVICE_0_RESERVE")


class MovableCase(Case):
    # Nothing is kept free, so that figures are those of the words.
    usual = {"SPILL_DEVICE_RESERVE": "0", "SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_MOVABLE_ENABLE": "on"}

    def program(self, words, *, preload=True, **variables):
        self.log.unlink(missing_ok=True)
        return self.run_program([str(PROGRAMS / "movable"), KERNELS, *words.split()], preload=preload, **{**self.usual, **variables})

    def good(self, words, **variables):
        return self.all_right(self.program(words, **variables))

    @staticmethod
    def where(done, letter):
        """What each `where` of a block printed."""
        return [line.split()[2] for line in done.stdout.splitlines() if line.startswith(f"where {letter} ")]

    @staticmethod
    def results(done):
        """(word, result) of each word."""
        lines = [line.split() for line in done.stdout.splitlines()]
        return [(line[0], line[1]) for line in lines if len(line) == 2 and line[1].startswith("CUDA_")]

    @staticmethod
    def result(done, word):
        return [result for said, result in MovableCase.results(done) if said == word][-1]

    def allocs(self):
        return decided(self.checked_records())

    def moves(self, what=None):
        return [record for record in self.checked_records() if record["kind"] == "move" and what in (None, record["what"])]

    def notes(self, code):
        return [record["text"] for record in self.checked_records() if record["kind"] == "note" and record["code"] == code]

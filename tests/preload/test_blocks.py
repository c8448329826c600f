"""Which blocks a framework's allocator has handed out is known from what it tells a profiler: dead memory moves without a copy."""
import unittest

from harness import KERNELS, LIBRARY, PROGRAMS, Case


WRAPPER = PROGRAMS / "c10_wrapper.so"


class Blocks(Case):
    usual = {"SPILL_DEVICE_LIMIT": "30MiB", "SPILL_DEVICE_RESERVE": "0", "SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_MOVABLE_ENABLE": "on",
             "SPILL_OOM_CHAIN": "trim,demote,split,host", "SPILL_OOM_HONEST_FIRST": "off", "SPILL_MOVABLE_WAIT": "10s",
             "SPILL_MOVABLE_FOLLOW": "on", "SPILL_SIM_DEVICES": "1"}
    SEGMENTS, STEPS = 12, 12  # of 4 MiB

    def program(self, *words, **variables):
        self.log.unlink(missing_ok=True)
        done = self.run_program([str(PROGRAMS / "blocks"), KERNELS, str(self.SEGMENTS), str(self.STEPS), *words], preload=True, vram="256MiB",
                                **{**self.usual, **variables})
        self.all_right(done)
        told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(told["mismatches"], "0")
        self.assertRegex(told["told"], r"^([0-9]+), arrived \1$")
        self.assertEqual(told.get("wrapped", ""), told["told"].split(",")[0] if str(WRAPPER) in variables.get("LD_PRELOAD", "") else "")
        return self.checked_records()

    def moved(self, records):
        return sum(record["bytes"] for record in records if record["kind"] == "move" and record["reason"] == "use")

    def test_data_is_right_whatever_moves(self):
        for kind in ((), ("expandable",)):
            for follow in ("on", "auto", "overlap", "off"):
                with self.subTest(kind=kind, follow=follow):
                    self.program(*kind, SPILL_MOVABLE_FOLLOW=follow)

    def test_memory_moves(self):
        for kind in ((), ("expandable",)):
            with self.subTest(kind=kind):
                self.assertGreater(self.moved(self.program(*kind)), 0)

    def test_memory_of_graphs_is_in_use(self):
        for kind in ((), ("expandable",)):
            with self.subTest(kind=kind):
                self.program("capture", *kind)

    def test_segments_are_handed_to_other_processes(self):
        for follow in ("on", "auto"):
            with self.subTest(follow=follow):
                records = self.program("export", SPILL_MOVABLE_FOLLOW=follow)
                notes = [record["text"] for record in records if record["kind"] == "note" and record["code"] == "export"]
                self.assertEqual(len(notes), 1)
                self.assertIn("hands it to other processes itself", notes[0])
        self.assertGreater(self.moved(self.program("export")), 0, "the others still move")

    def test_another_preload_stands_there_too(self):
        for order in ([LIBRARY, WRAPPER], [WRAPPER, LIBRARY]):
            with self.subTest(order):
                self.program(LD_PRELOAD=":".join(map(str, order)))

    def test_off(self):
        """Nobody follows blocks, and PyTorch's own function is called all the same."""
        done = self.run_program([str(PROGRAMS / "blocks"), KERNELS, "4", "1"], preload=True, vram="256MiB", SPILL="0")
        self.all_right(done)
        self.assertRegex(done.stdout, r"told ([0-9]+), arrived \1\n")


if __name__ == "__main__":
    unittest.main()

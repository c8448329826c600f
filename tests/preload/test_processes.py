"""Memory of another process: what was exported stays where it is while other memory moves, and what is imported is left alone."""
import unittest

from harness import KERNELS, MIB, PROGRAMS, Case, decided

KINDS = ("legacy", "descriptor", "pool")
ENOUGH = "1GiB"
OWN = 14  # blocks of 4 MiB that each process has beside the one that both use


class Processes(Case):
    vram = "48MiB"  # a pool takes 32 of it
    usual = {"SPILL_DEVICE_RESERVE": "0", "SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_MOVABLE_ENABLE": "on"}

    def both(self, kind, **variables):
        self.log.unlink(missing_ok=True)
        self.importer = self.folder / "importer.jsonl"
        self.importer.unlink(missing_ok=True)
        command = [str(PROGRAMS / "processes"), kind, str(self.importer), KERNELS]
        devices = {"SPILL_SIM_DEVICES": variables.get("SPILL_SIM_DEVICES", "1")}
        alone = self.run_program(command, preload=False, vram=ENOUGH, **devices)
        done = self.run_program(command, **{**self.usual, **variables})
        self.all_right(alone)
        self.all_right(done)
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(alone.stdout.splitlines()))

    def of_block(self, records):
        """The allocation that both use: the last one before the owner's others."""
        return decided(records)[-OWN - 1]

    def test_exported_memory_stays_and_other_memory_moves(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.both(kind)
                records = self.checked_records()
                moved = [record["seq"] for record in records if record["kind"] == "move"]
                self.assertGreater(len(moved), 0)
                self.assertNotIn(self.of_block(records)["seq"], moved)
                self.assertEqual(self.of_block(records)["place"], "device" if kind == "pool" else "movable")
                self.assertEqual(records[-1]["live"]["device_bytes"] + records[-1]["live"]["host_bytes"], 0)

    def test_imported_memory_is_not_ours(self):
        """It has no line in the importer's log, takes nothing of its limit, and does not move."""
        for kind in KINDS:
            with self.subTest(kind):
                self.both(kind)
                records = self.checked_records(self.importer)
                self.assertEqual([record["bytes"] for record in decided(records)], [4 * MIB] * OWN)
                self.assertGreater(len([record for record in records if record["kind"] == "move"]), 0)
                self.both(kind, SPILL_DEVICE_LIMIT=f"{OWN * 4}MiB", SPILL_SIM_VRAM=ENOUGH, SPILL_MOVABLE_ENABLE="off")
                records = self.checked_records(self.importer)
                self.assertEqual({record["place"] for record in decided(records)}, {"device"})

    def test_a_peer_device_of_the_importer(self):
        """Peer access that the importer enables after it has opened the memory."""
        self.both("peer", SPILL_SIM_DEVICES="2")

    def test_the_end_of_the_last_thread_is_the_end_of_the_process(self):
        """Although libspill has a thread that serves what was exported. The log has its last line."""
        done = self.run_program([str(PROGRAMS / "last_thread")], timeout=60, **self.usual)
        self.assertEqual((done.returncode, done.stdout.splitlines()), (0, ["export 0", "the last thread"]), done.stderr)
        records = self.checked_records()
        self.assertEqual((decided(records)[0]["place"], records[-1]["how"]), ("movable", "exit"))

    def test_memory_that_does_not_move(self):
        for kind in KINDS:
            for chain in ("managed", "host"):
                with self.subTest(kind, chain=chain):
                    self.both(kind, SPILL_MOVABLE_ENABLE="off", SPILL_OOM_CHAIN=chain)
                    self.assertEqual(self.of_block(self.checked_records())["place"], "device")


if __name__ == "__main__":
    unittest.main()

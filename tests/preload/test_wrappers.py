"""Beside preloads that wrap functions of the loader, malloc or open (wrapper.c), in either order: nothing goes round in a circle, and a program is served
unless a wrapper of dlsym takes its look-ups past libspill."""
import shutil
import unittest

from harness import LIBRARY, PROGRAMS, Case, program

# By what they wrap. With an empty list of the loader's, libspill has to ask for dlsym by its version.
WRAPPERS = ("dlvsym", "dlsym", "both", "phdr", "strncmp", "list", "malloc", "open")
TAKES_LOOK_UPS = ("dlsym", "both")
WAYS = {"prog_driver_link": "link", "prog_driver_dlsym": "dlsym", "prog_runtime": "proc"}


def orders(name):
    """LD_PRELOAD with the wrapper before libspill, and behind it."""
    wrapper = f"{PROGRAMS}/wrapper_{name}.so"
    return {"before": f"{wrapper}:{LIBRARY}", "behind": f"{LIBRARY}:{wrapper}"}


EACH = [(name, where, order) for name in WRAPPERS for where, order in orders(name).items()]


class Wrappers(Case):
    movable = "off"

    def prog(self, name, **variables):
        self.log.unlink(missing_ok=True)
        return self.run_program(program(name, "--count", "4", "--mib", "6"), vram="20MiB", **variables)

    def alone(self, name):
        done = self.prog(name, preload=False)
        return done.returncode, done.stdout

    def test_programs_without_a_gpu(self):
        for name in (*WRAPPERS, "list_dlvsym"):
            for where, order in orders(name).items():
                for switch in ("0", "1"):
                    with self.subTest(wrapper=name, where=where, SPILL=switch):
                        done = self.run_program(["/bin/true"], LD_PRELOAD=order, SPILL=switch)
                        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_ends_of_a_process(self):
        for last, status in (("abort()", -6), ("_exit(5)", 5)):
            command = ["python3", "-c", f"import os; os.{last}"]
            alone = self.run_program(command, preload=False)
            self.assertEqual(alone.returncode, status)
            for name, where, order in EACH:
                with self.subTest(wrapper=name, where=where, last=last):
                    done = self.run_program(command, LD_PRELOAD=order)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (status, alone.stdout, alone.stderr))

    def test_an_end_of_a_process_passes_who_is_behind(self):
        for name, arguments, status in (("abort", "", -6), ("_exit", "5", 5), ("_Exit", "5", 5), ("__assert_fail", "b'a', b'file', 1, b'f'", -6)):
            for switch in ("0", "1"):
                with self.subTest(name, SPILL=switch):
                    code = f"import ctypes; getattr(ctypes.CDLL(None), '{name}')({arguments})"
                    done = self.run_program(["python3", "-c", code], LD_PRELOAD=orders("ends")["behind"], SPILL=switch)
                    self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (status, [name]), done.stderr)
                # A constructor behind libspill runs before libspill's own.
                with self.subTest(name, SPILL=switch, at_start=True):
                    done = self.run_program(["/bin/true"], LD_PRELOAD=orders("ends")["behind"], SPILL=switch, END_AT_START=name)
                    self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (status, [name]), done.stderr)

    def test_off(self):
        alone = {way: self.alone(way) for way in WAYS}
        for name, where, order in EACH:
            for way, result in alone.items():
                with self.subTest(wrapper=name, where=where, way=way):
                    done = self.prog(way, LD_PRELOAD=order, SPILL="0")
                    self.assertEqual((done.returncode, done.stdout), result, done.stderr)
                    self.assertFalse(self.log.exists())

    def check_served(self, way):
        records = self.checked_records()
        self.assertIn("split", {record.get("place") for record in records})
        hits = {hit["way"] for hit in records[-1]["hits"] if hit["symbol"] == "cuMemAlloc_v2"}
        self.assertEqual(hits, {WAYS[way]})
        return [record["text"] for record in records if record.get("code") == "foreign-dlsym"]

    def test_programs_are_served(self):
        for name, where, order in EACH:
            past_us = name in TAKES_LOOK_UPS and where == "before"
            for way in ("prog_driver_link",) if past_us else WAYS:
                with self.subTest(wrapper=name, where=where, way=way):
                    done = self.prog(way, LD_PRELOAD=order)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertIn("all data right", done.stdout)
                    notes = self.check_served(way)
                    self.assertEqual(len(notes), past_us, notes)
                    self.assertTrue(all(f"wrapper_{name}.so" in note for note in notes), notes)

    def three(self, name):
        """LD_PRELOAD with three copies of the wrapper, each a library of its own: before libspill, behind it, and around it."""
        one, two, last = (shutil.copy(PROGRAMS / f"wrapper_{name}.so", self.folder / f"{name}-{number}.so") for number in range(3))
        return {"before": f"{one}:{two}:{last}:{LIBRARY}", "behind": f"{LIBRARY}:{one}:{two}:{last}",
                "around": f"{one}:{LIBRARY}:{two}:{last}"}

    def test_three_of_each(self):
        for name in WRAPPERS:
            for where, order in self.three(name).items():
                past_us = name in TAKES_LOOK_UPS and where != "behind"
                with self.subTest(wrapper=name, where=where):
                    done = self.run_program(["/bin/true"], LD_PRELOAD=order)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
                    for way in ("prog_driver_link",) if past_us else WAYS:
                        done = self.prog(way, LD_PRELOAD=order)
                        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                        self.assertIn("all data right", done.stdout)
                        self.check_served(way)
                        self.assertEqual(self.prog(way, LD_PRELOAD=order, SPILL="0").stdout, self.alone(way)[1])

    def test_a_wrapper_of_dlsym_before_us_takes_look_ups_past_us(self):
        """`spill doctor` says so (tests/cli/doctor_environment.bats); the program is as it is alone."""
        for name in TAKES_LOOK_UPS:
            for way in ("prog_driver_dlsym", "prog_runtime"):
                with self.subTest(wrapper=name, way=way):
                    done = self.prog(way, LD_PRELOAD=orders(name)["before"])
                    self.assertEqual((done.returncode, done.stdout), self.alone(way), done.stderr)

    def test_without_any_way_to_dlsym(self):
        """The program's look-ups find nothing. It ends by itself, with a status of its own."""
        for where, order in orders("list_dlvsym").items():
            with self.subTest(where=where):
                self.assertGreaterEqual(self.prog("prog_driver_dlsym", LD_PRELOAD=order).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

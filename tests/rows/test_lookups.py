"""NVIDIA's own CUDA runtime, shared and static, on the simulated driver, which has public entry points only: the
runtime refuses it, after it has made its look-ups. Whatever it asks for that the table has is answered by the row of
that very ABI, the rest by the driver's own function."""
import os
import pathlib
import unittest

from harness import Case, LIBRARY

ROWS = pathlib.Path(os.environ["ROWS"])


# Forms with 32-bit sizes, which no runtime of today asks for: no row is theirs.
OLDER = [[name, "2000", "1", name] for name in ("cuMemAlloc", "cuMemFree", "cuMemAllocHost", "cuArrayCreate")]


class Lookups(Case):
    def run_lookups(self, name, *arguments, **variables):
        path = f"{os.environ['SIM_PATH'].split(':')[0]}:{os.environ['CUDA_LIBRARIES']}"
        done = self.run_program([str(ROWS / name), *arguments], LD_LIBRARY_PATH=path, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def check(self, name):
        asked = self.folder / "asked"
        alone = self.run_lookups(name, preload=False, SPILL_SIM_LOOKUPS=asked)
        questions = [line.split() for line in asked.read_text(encoding="ascii").splitlines()]
        self.assertGreater(len(questions), 400, "the real runtime makes its look-ups before it gives up")
        answered = [question for question in questions if question[3] != "-"]
        done = self.run_lookups(name, self.keep(answered + OLDER))
        self.assertTrue(done.stderr.startswith(alone.stderr), (alone.stderr, done.stderr))
        records = self.checked_records()
        rows = self.rows()
        wrapped, passed = [], []
        for question, line in zip(answered + OLDER, done.stdout.splitlines(), strict=True):
            symbol, where, found, same = line.split()
            self.assertEqual(symbol, question[3])
            library = "libspill" if symbol in rows else "libcuda"
            self.assertEqual((where, found, same), (library, library, "yes"), question)
            if symbol in rows:
                wrapped.append(symbol)
            elif question[0] in rows.values():
                passed.append(question[0])
        off = self.run_lookups(name, self.keep(answered + OLDER), SPILL="0")
        self.assertEqual({tuple(line.split()[1:]) for line in off.stdout.splitlines()}, {("libcuda", "libcuda", "yes")})
        codes = [record["code"] for record in records if record["kind"] == "note"]
        self.assertNotIn("unknown-symbol", codes, "no name of CUDA 13 is an allocation that the table forgot")
        notes = [record["text"] for record in records if record.get("code") == "unknown-version"]
        self.assertEqual({note.split()[0] for note in notes}, set(passed))
        # The runtime's questions came to us: they are counted with those that the program asked again.
        hits = {(hit["symbol"], hit["way"]): hit["count"] for hit in records[-1]["hits"]}
        repeated = len(answered + OLDER) + len(wrapped)
        self.assertEqual(hits.get(("cuGetProcAddress_v2", "dlsym"), 0) + hits.get(("cuGetProcAddress_v2", "proc"), 0),
                         len(questions) + repeated)
        names = {question[0] for question in questions}
        print(f"{name}: {len(questions)} look-ups of {len(names)} names, {len(wrapped)} answered by "
              f"{len(set(wrapped))} of our rows, {len(passed) - len(OLDER)} of a form without a row")
        self.assertGreater(len(set(wrapped)), 40)

    def keep(self, questions):
        kept = self.folder / "kept"
        kept.write_text("".join(" ".join(question) + "\n" for question in questions), encoding="ascii")
        return str(kept)

    def test_a_newer_driver(self):
        """A name that looks like an allocation and has no row is noted once and passed through."""
        kept = self.keep([[name, "99000", "1", "tomorrow"] for name in
                          ("cuMemAllocTomorrow", "cuTomorrowGetAllocation", "cuMemAllocTomorrow")])
        done = self.run_lookups("lookups_static", kept, LD_PRELOAD=f"{LIBRARY}:{ROWS}/newer.so")
        self.assertEqual([line.split()[1] for line in done.stdout.splitlines()], [f"{ROWS}/newer.so"] * 3)
        notes = [record["text"] for record in self.checked_records() if record.get("code") == "unknown-symbol"]
        self.assertEqual(notes, ["cuMemAllocTomorrow looks like an allocation that libspill does not know: "
                                 "passed through"])

    def test_work_that_the_table_has_not(self):
        """It passes the gate by, so nothing moves any more; host functions touch no memory of the device."""
        for name, noted in (("cuLaunchTomorrow", 1), ("cuLaunchHostFunc", 0)):
            kept = self.keep([[name, "13000", "1", "tomorrow"]])
            self.log.unlink(missing_ok=True)
            self.run_lookups("lookups_static", kept, LD_PRELOAD=f"{LIBRARY}:{ROWS}/newer.so")
            notes = [record["text"] for record in self.records() if "submits work" in record.get("text", "")]
            self.assertEqual(len(notes), noted, notes)

    def test_a_name_that_is_another_function_now(self):
        """cuda.h of CUDA 12 calls cuGraphInstantiateWithFlags by a shorter name, and so may a driver."""
        kept = self.keep([["cuGraphInstantiate", version, "1", symbol] for version, symbol in
                          (("11000", "cuGraphInstantiate_v2"), ("12000", "cuGraphInstantiateWithFlags"))])
        done = self.run_lookups("lookups_static", kept, LD_PRELOAD=f"{LIBRARY}:{ROWS}/newer.so")
        self.assertEqual(done.stdout.splitlines(), ["cuGraphInstantiate_v2 libspill libspill yes",
                                                    "cuGraphInstantiateWithFlags libspill libspill yes"])

    def rows(self):
        """Symbol → base of the driver's rows."""
        text = (pathlib.Path(__file__).parents[2] / "docs/hooks.md").read_text(encoding="utf-8")
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| CUDA_DRIVER")]
        return {row[1].strip("`"): row[2].strip("`") for row in rows}

    def test_shared(self):
        self.check("lookups")

    def test_static(self):
        self.check("lookups_static")


if __name__ == "__main__":
    unittest.main(verbosity=2)

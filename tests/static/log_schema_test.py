"""docs/log.schema.json says what docs/log-format.md does: kept logs are as it says, what a reader refuses it refuses, what readers skip
it lets pass; and the document explains each word.
usage: log_schema_test.py LOG-FORMAT.MD
"""
import copy
import json
import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))
import log_schema

DOCUMENT = pathlib.Path(sys.argv.pop(1)).read_text(encoding="utf-8")
KINDS = [name.removeprefix("kind_") for name in log_schema.DEFINITIONS if name.startswith("kind_")]


def line(record):
    """As the library writes it."""
    return json.dumps(record, separators=(",", ":"))


def lines(name):
    return [json.loads(line) for line in (TESTS / name).read_text(encoding="utf-8").splitlines()]




@unittest.skipIf(log_schema.jsonschema is None, "no python3-jsonschema here")
class Schema(unittest.TestCase):
    def setUp(self):
        log_schema.jsonschema.Draft202012Validator.check_schema(log_schema.SCHEMA)
        self.reader = log_schema.jsonschema.Draft202012Validator(log_schema.SCHEMA)

    def good(self, record):
        return self.reader.is_valid(record)

    def test_kept_logs(self):
        """Of every version that there was, as it wrote them: they are never made anew."""
        kinds = set()
        for path in sorted((TESTS / "cli/data/kept").glob("*.jsonl")):
            for number, record in enumerate(lines(path), 1):
                with self.subTest(path=path.name, line=number):
                    self.reader.validate(record)
                    kinds.add(record["kind"])
        self.assertEqual(kinds, set(KINDS))

    def test_readers_skip(self):
        for record in ({"v": 1, "kind": "later", "t": "?"}, {"v": 2, "kind": "alloc"}):
            self.assertTrue(self.good(record))
        for record in self.one_of_each():
            self.assertTrue(self.good(record | {"later": [1]}))

    def one_of_each(self):
        found = {}
        for record in self.kept():
            found.setdefault(record["kind"], record)
        self.assertEqual(set(found), set(KINDS))
        return list(found.values())

    def kept(self):
        return [record for path in sorted((TESTS / "cli/data/kept").glob("*.jsonl")) for record in lines(path)]

    def test_what_is_refused(self):
        """A member that is needed and missing, and any member of another type, by kind and member."""
        for record in self.one_of_each():
            definition = log_schema.DEFINITIONS["kind_" + record["kind"]]
            self.assertTrue(self.good(record))
            for name in definition["required"]:
                less = {key: value for key, value in record.items() if key != name}
                self.assertFalse(self.good(less), f"{record['kind']} without {name}")
            for name in definition["properties"]:
                if name in ("kind", "v"):
                    continue
                for wrong in (None, [[]]) if name != "t" else (None, -1):
                    self.assertFalse(self.good(record | {name: wrong}), f"{record['kind']}.{name}: {wrong}")

    def test_words(self):
        for record in self.one_of_each():
            for name, member in log_schema.DEFINITIONS["kind_" + record["kind"]]["properties"].items():
                if "enum" in member or "pattern" in member:
                    self.assertFalse(self.good(record | {name: "nonsense"}), f"{record['kind']}.{name}")

    def test_the_library_writes_what_is_in_the_table(self):
        """The check of the preloaded tests: strict, and no less where it has seen the like before."""
        strict = log_schema.Lines()
        for record in self.kept():
            strict.check(record)
            strict.check(record, line(record))
        refused = (log_schema.jsonschema.ValidationError, KeyError)
        for record in self.kept():
            worse = [record | {"unlisted": 1}, record | {"kind": "later"}, record | {"t": "0"}]
            worse += [record | {name: "nonsense"} for name in ("place", "reason", "ptr", "what", "code", "how") if name in record]
            for name, value in record.items():
                if isinstance(value, dict):
                    worse.append(record | {name: value | {"unlisted": 1}})
                elif isinstance(value, list) and value and isinstance(value[0], dict):
                    worse.append(record | {name: value[:-1] + [value[-1] | {"unlisted": 1}]})
                elif isinstance(value, int) and name not in ("pid", "ppid", "tid", "driver"):
                    worse += [record | {name: -1}, record | {name: 2 if name == "v" else value % 1000 + 0.5}]
            for one in worse:
                with self.assertRaises(refused, msg=str(one)[:200]):
                    strict.check(one)
                with self.assertRaises(refused, msg=str(one)[:200]):
                    strict.check(one, line(one))


class Document(unittest.TestCase):
    def test_codes_are_explained(self):
        section = DOCUMENT.split("\n## note\n")[1].split("<!-- members")[0]
        for code in log_schema.DEFINITIONS["kind_note"]["properties"]["code"]["enum"]:
            self.assertIn(f"`{code}` (", section)

    def test_each_kind_has_its_section(self):
        for kind in KINDS:
            self.assertIn(f"\n<!-- members of {kind} -->\n| member | type | meaning |\n", DOCUMENT)
            self.assertIn(f"\n## {kind}\n", DOCUMENT)

    def test_the_versions(self):
        known = log_schema.DEFINITIONS["kind_alloc"]["properties"]["v"]["const"]
        self.assertIn(f"\n| {known} | ", DOCUMENT.split("\n## Versions\n")[1])


if __name__ == "__main__":
    unittest.main(verbosity=1)

"""tests/aarch64/left_out names tests that there are, each with a reason: left_out.py ROOT TESTS

ROOT: the tree. TESTS: intro-tests.json of a build, meson's list of its tests.
"""
import json
import pathlib
import re
import sys

DEFINES = {".c": r"TEST(?:_WITH)?\((\w+)[,)]", ".py": r"def (test_\w+)\(", ".bats": r'@test "(.*)" \{'}
LINE = re.compile(r"([^#:/][^:/]*?)(?: / ([^:]*))?: (.*\S.*)")


def all_cases(root):
    """The tests of all programs and files."""
    found = set()
    for path in (root / "tests").rglob("*"):
        if path.suffix in DEFINES:
            found.update(re.findall(DEFINES[path.suffix], path.read_text(encoding="utf-8")))
    return found


def main(root, tests):
    known = {test["name"] for test in json.loads(pathlib.Path(tests).read_text(encoding="utf-8"))}
    cases = all_cases(pathlib.Path(root))
    assert len(known) > 300 and len(cases) > 1000, "there are more"
    bad, count = [], 0
    for line in (pathlib.Path(root) / "tests/aarch64/left_out").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        parts = LINE.fullmatch(line)
        count += 1
        if not parts:
            bad.append(f"no NAME: REASON, and no NAME / TEST: REASON: {line}")
        elif parts[1] not in known:
            bad.append(f"no test is named {parts[1]}")
        elif parts[2] and parts[2] not in cases:
            bad.append(f"no test of {parts[1]} is named {parts[2]}")
    print("\n".join(bad) or f"{count} lines")
    sys.exit(bool(bad) or not count)


main(*sys.argv[1:])

"""Each row of a table with a column "tests" names tests of the tree: named_tests.py SOURCE_ROOT FILE.md…

A test is `FILE NAME`: FILE in tests/, and NAME a test in it: `test_top.py Class.test_name`, `test_top.c name` of TEST(name), the
beginning of the name of a test of bats. Where FILE is one test, NAME is left out. Each file must be run by a meson.build, by
scripts/check, or by scripts/gpu-test, which runs all of tests/gpu/test_*.py.
"""
import ast
import pathlib
import re
import sys


def names_in(path):
    """The names of a file's tests, or None: the file is one test."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".bats":
        return re.findall(r'^@test "(.*)" \{$', text, re.M)
    if path.suffix == ".c":
        return re.findall(r"^\w*TEST\w*\((\w+)", text, re.M)
    if path.suffix == ".py":
        classes = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}

        def methods(node):
            own = [item.name for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]
            return own + [name for base in node.bases if isinstance(base, ast.Name) and base.id in classes for name in methods(classes[base.id])]

        return [f"{name}.{method}" for name, node in classes.items() for method in methods(node)]
    return []


def problem(word, files, runs):
    """What is wrong with one `FILE NAME`; None: nothing."""
    file, _, name = word.partition(" ")
    found = [path for path in files if f"/{path}".endswith(f"/{file}")]
    if len(found) != 1:
        return f"{len(found)} files of that name in tests/"
    stem = re.sub(r"^(test|fuzz)_|\.\w+$", "", found[0].name)
    on_gpu = found[0].match("tests/gpu/test_*.py")
    if not on_gpu and not re.search(rf"['\"/_]{re.escape(stem)}['\".]|{re.escape(found[0].name)}", runs):
        return "no meson.build and no step of scripts/check runs it"
    names = names_in(found[0])
    if name and not any(known == name or (file.endswith(".bats") and known.startswith(name)) for known in names):
        return "no such test in the file"
    return None


def rows(text):
    """(line number, last cell) of each row under a heading whose last column is "tests"."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else None
        if cells is None:
            inside = False
        elif cells[-1].rstrip("| ") == "tests":
            inside = True
        elif inside and not re.match(r"^\|[-|]+$", line):
            yield number, cells[-1]


def main(root, documents):
    files = [path for path in (root / "tests").rglob("*") if path.is_file()]
    runs = "".join(path.read_text(encoding="utf-8") for path in [*root.rglob("tests/**/meson.build"), root / "scripts/check"])
    assert problem("test_top.py Whose.test_no", files, runs) and problem("no.py", files, runs) and problem("test_top.c no", files, runs)
    assert not problem("test_top.py Whose.test_the_seals_hold", files, runs)
    count, bad = 0, []
    for document in documents:
        for number, cell in rows(document.read_text(encoding="utf-8")):
            words = re.findall(r"`([^`]+)`", cell)
            count += len(words)
            bad += [f"{document.name}:{number}: names no test"] * (not words)
            bad += [f"{document.name}:{number}: {word}: {what}" for word in words if (what := problem(word, files, runs))]
    print("\n".join(bad) or f"{count} tests named, all there")
    sys.exit(bool(bad) or count < 20)


main(pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]])

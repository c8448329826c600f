"""Documents name what is in the tree: names.py SOURCE_ROOT FILE.md|FOLDER…

In `code` and in blocks of code, each name of a source (gate.c), each path (src/work, engine/gate.c) and each function
of ours (spill_admit) must exist. A path may leave its first folders out. Words in capitals stand for any text:
fuzz_NAME.c needs some fuzz_….c. Names of the user's own files and of other projects are no sources here: give them a
path that begins with /, or write them without the ending of a source.
"""
import fnmatch
import pathlib
import re
import sys

FOLDERS = ("docs", "policy", "scripts", "shim", "src", "tests")
SOURCE = re.compile(r"^[\w.*\[\]-]+(/[\w.*\[\]-]+)*\.(c|h|def|S|py|sh|bats|scd|html|css|js)$")
PATH = re.compile(rf"^({'|'.join(FOLDERS)})/[\w.*\[\]/-]*$")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`]+`", re.M | re.S)
PLACEHOLDER = re.compile(r"(?<![a-z])[A-Z]{3,}(?![a-z])")


def tree(root):
    """All files and folders of the tree, as texts that begin with a slash."""
    found = [path for name in FOLDERS for path in [root / name, *(root / name).rglob("*")] if "__pycache__" not in path.parts]
    return ["/" + str(path.relative_to(root)) for path in found]


def is_there(name, paths, folders=FOLDERS):
    pattern = PLACEHOLDER.sub("*", name.rstrip("/"))
    begin = "/" if pattern.split("/")[0] in folders else "*/"
    return any(fnmatch.fnmatchcase(path, begin + pattern) for path in paths)


def missing(text, paths, functions):
    """(number of names, those that are not there)"""
    words = [word.strip(".,;:()…") for code in CODE.finditer(text) for word in re.split(r"[\s`→│▶]+", code[0])]
    names = {word for word in words if SOURCE.match(word) or PATH.match(word)}
    ours = {word for word in words if re.match(r"^spill_[a-z_]+$", word)}
    return len(names | ours), sorted([name for name in names if not is_there(name, paths)] + list(ours - functions))


def check_self():
    """What it refuses, so that it cannot become blind."""
    paths = ["/src", "/src/work", "/src/work/gate.c", "/tests/fuzz", "/tests/fuzz/fuzz_ini.c"]
    for name in ("`gate.h`", "`src/gate.c`", "`engine/gate.c`", "`fuzz_NAME.py`", "`src/engine/`", "```\n a ▶ idle.c\n```", "`spill_no`"):
        assert missing(name, paths, {"spill_yes"})[1], name
    for name in ("`gate.c`", "`work/gate.c`", "`src/work/gate.c`", "`fuzz_NAME.c`", "`src/work/`", "gate.h", "`/etc/a.py`", "`spill_yes`"):
        assert not missing(name, paths, {"spill_yes"})[1], name


def main(root, documents):
    check_self()
    paths = tree(root)
    sources = [path for name in ("policy", "shim", "src", "tests") for path in (root / name).rglob("*") if path.suffix in (".c", ".h", ".def", ".S")]
    functions = {name for path in sources for name in re.findall(r"\bspill_[a-z_]+\b", path.read_text(encoding="utf-8"))}
    count = bad = 0
    for document in documents:
        names, gone = missing(document.read_text(encoding="utf-8"), paths, functions)
        count, bad = count + names, bad + len(gone)
        for name in gone:
            print(f"{document.name}: {name}: not in the tree")
    print(f"{len(documents)} documents, {count} names, {bad} bad")
    sys.exit(bad > 0 or count < 100)


given = [pathlib.Path(name) for name in sys.argv[2:]]
main(pathlib.Path(sys.argv[1]), [file for path in given for file in (sorted(path.glob("*.md")) if path.is_dir() else [path])])

"""What a forked child forgets: each function of a header that says so is called at a fork, and each lock that fork takes is in the list.

usage: forks.py SOURCE. A function is one of these by its name, …_reset or …_fork_child, unless the comment at it says that it is for
tests. It is called by fork_child of runtime.c, by forget_parent of a lock, or by another such function that is.
"""
import pathlib
import re
import sys

NAMED = re.compile(r"\b(spill_\w+_(?:reset|fork_child))\b")
DECLARED = re.compile(r"((?:/\*(?:(?!\*/).)*\*/\s*)?)void (spill_\w+_(?:reset|fork_child))\(void\);([^\n]*)", re.DOTALL)
# Of runtime.c, and of each lock in its list.
ROOTS = ("fork_child", "forget_parent")
LOCK = re.compile(r"^extern const struct spill_fork_lock (\w+);", re.MULTILINE)


def bodies(text):
    """The text of each function by its name, as clang-format writes it."""
    for match in re.finditer(r"^\w[\w \*]*?(\w+)\([^;{]*\)\n\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        yield match[1], match[2]


def missing(files):
    """files: texts by path. What is not called at a fork, and locks that are not taken."""
    declared, locks, calls = set(), set(), {}
    for path, text in files.items():
        if path.endswith(".h"):
            declared |= {name for before, name, behind in DECLARED.findall(text) if "or tests" not in before + behind}
            locks |= set(LOCK.findall(text))
        else:
            for name, body in bodies(text):
                if name in ROOTS or NAMED.fullmatch(name):
                    calls.setdefault(name, set()).update(NAMED.findall(body))
    reached, left = set(), set(ROOTS)
    while left:
        name = left.pop()
        reached.add(name)
        left |= calls.get(name, set()) - reached
    listed = set(re.findall(r"&(\w+)", files["src/runtime.c"]))
    return sorted(declared - reached) + sorted(locks - listed)


def test_itself():
    files = {"src/a.h": "/* For tests. */\nvoid spill_a_reset(void);\n\nvoid spill_b_reset(void); /* in a child */\nvoid spill_c_fork_child(void);\n"
                        "extern const struct spill_fork_lock spill_a_lock;\nextern const struct spill_fork_lock spill_b_lock;\n",
             "src/b.c": "void spill_b_reset(void)\n{\n\tspill_d_reset();\n}\n",
             "src/d.h": "void spill_d_reset(void);\nvoid spill_e_reset(void);\n",
             "src/e.c": "static void forget_parent(void)\n{\n\tspill_e_reset();\n}\n",
             "src/runtime.c": "static const list[] = {&spill_a_lock};\nstatic void fork_child(void)\n{\n\tspill_b_reset();\n}\n"}
    assert missing(files) == ["spill_c_fork_child", "spill_b_lock"], missing(files)


def main():
    source = pathlib.Path(sys.argv[1])
    test_itself()
    files = {str(path.relative_to(source)): path.read_text(encoding="utf-8") for path in (source / "src").rglob("*.[ch]")}
    found = missing(files)
    assert len(files) > 100
    for name in found:
        print(f"{name}: not called in a forked child (fork_child of src/runtime.c)")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

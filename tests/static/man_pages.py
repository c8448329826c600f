"""The manual pages as their readers see them: all rows of the tables are there, each page names the others, and roff has nothing to
complain about. usage: man_pages.py COMMANDS.DEF OPTIONS.DEF SPILL.1 LIBSPILL.7 PAGE…
"""
import pathlib
import re
import shutil
import subprocess
import sys

import commands_table

if not shutil.which("groff"):
    print("no groff here")
    sys.exit(77)
table, options, *pages = map(pathlib.Path, sys.argv[1:])
bad = []


def expect(truth, what):
    if not truth:
        bad.append(what)
        print(what)


def shown(page):
    """The page's text as a terminal has it, a paragraph a line, blanks as one."""
    done = subprocess.run(["groff", "-K", "utf8", "-man", "-t", "-Tutf8", "-ww", "-P-cbou", "-rLL=9000n", page],
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and not done.stderr, f"{page.name}: {done.stderr}")
    return re.sub(r"[ \t]+", " ", done.stdout).replace("‐", "-").replace("\u2212", "-")


texts = {page.name: shown(page) for page in pages}
manual, library = texts["spill.1"], texts["libspill.7"]
for command in commands_table.read(table).values():
    start = manual.find(f"\n spill {command.name} - {command.summary}\n")
    expect(start >= 0, f"spill(1) has no section for {command.name}")
    section = manual[start + 1:]
    section = section[:re.search(r"\n (?:spill \w+ - |)\n|\n[A-Z]|\Z", section).start()]
    for line in command.about.split("\n"):
        expect(f" {line}\n" in section, f"spill(1), {command.name}, lacks: {line}")
    for option in command.options:
        said = (f"-{option.letter}, " if option.letter else "") + f"--{option.name}" + (f" {option.argument}" if option.argument else "")
        expect(f"\n {said}\n {option.text}\n" in section, f"spill(1), {command.name}, lacks: {said}: {option.text}")
    for line in command.examples:
        expect(f"\n {re.sub(' +', ' ', line)}\n" in section + "\n", f"spill(1), {command.name}, lacks: {line}")
rows = re.findall(r'^OPTION\("(\w+)", "(\w+)"', options.read_text(), re.M)
expect(len(rows) > 20, f"{options} has another form than this test knows")
for section, key in rows:
    name = f"SPILL_{key}" if section == "spill" else f"SPILL_{section}_{key}"
    expect(f"\n {name.upper()}: " in library, f"libspill(7) lacks {name.upper()}")

for file in ("pkg-config --variable=preload spill", "share/spill/example.conf", "share/spill/profiles/"):
    expect(file in library, f"libspill(7) does not tell of {file}")

family = {"spill(1)", "libspill(7)", "spill.conf(5)", "spill-log(5)"}
for name, text in texts.items():
    stem, _, section = name.rpartition(".")
    also = text[text.find("\nSEE ALSO\n"):] if "\nSEE ALSO\n" in text else ""
    expect(set(re.findall(r"[\w.-]+\(\d\)", also)) - {"ld.so(8)"} >= family - {f"{stem}({section})"},
           f"{name} does not refer to all of {sorted(family)}")
    for other in re.findall(r"(?<![\w.-])(?:lib)?spill[\w.-]*\(\d\)", text):
        expect(other in family, f"{name} refers to {other}, which there is not")
print(f"{len(texts)} pages, {len(bad)} bad")
sys.exit(bool(bad))

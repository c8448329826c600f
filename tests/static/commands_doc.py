"""docs/commands.md has a row for each command, which begins with its usage as `spill COMMAND --help` prints it, and none more; rows and sections
stand in the order of the table.
usage: commands_doc.py COMMANDS.DEF COMMANDS.MD
"""
import pathlib
import re
import sys

import commands_table


def usage(command):
    options = [f"[-{option.letter}" if option.letter else f"[--{option.name}" for option in command.options]
    options = [said + (f" {option.argument}]" if option.argument else "]") for said, option in zip(options, command.options)]
    return " ".join(["spill", command.name, *options, *filter(None, [command.operands])]).replace("|", "\\|")


table, document = map(pathlib.Path, sys.argv[1:])
commands = commands_table.read(table)
ordered = [usage(command) for command in commands.values()]
wanted = set(ordered)
found = re.findall(r"^\| `(spill \w+[^`]*)` \|", document.read_text(), re.M)
sections = re.findall(r"^## spill (\w+)$", document.read_text(), re.M)
in_order = sections == [name for name in commands if name in sections]
if wanted == set(found) and (ordered != found or not in_order):
    print(f"{document.name} has its rows or sections in another order than {table.name}")
for line in sorted(wanted - set(found)):
    print(f"{document.name} lacks a row: | `{line}` |")
for line in sorted(set(found) - wanted):
    print(f"{document.name} has a row that is no command's usage: {line}")
sys.exit(ordered != found or not in_order)

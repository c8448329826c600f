"""docs/commands.md has a row for each command, which begins with its usage as `spill COMMAND --help` prints it, and none more.
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
wanted = {usage(command) for command in commands_table.read(table).values()}
found = re.findall(r"^\| `(spill \w+[^`]*)` \|", document.read_text(), re.M)
for line in sorted(wanted - set(found)):
    print(f"{document.name} lacks a row: | `{line}` |")
for line in sorted(set(found) - wanted):
    print(f"{document.name} has a row that is no command's usage: {line}")
sys.exit(wanted != set(found) or len(found) != len(wanted))

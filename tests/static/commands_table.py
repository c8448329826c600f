"""The rows of src/cli/base/commands.def, read as text: what is generated of them is tested by those who import this."""
import ast
import re

STRING = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'


class Command:
    def __init__(self, name, operands, word, options_first, summary, about):
        self.name, self.operands, self.word, self.options_first = name, operands, word, options_first == "true"
        self.summary, self.about = summary, about
        self.options, self.examples = [], []


class Option:
    def __init__(self, name, letter, argument, word, text):
        self.name, self.letter, self.argument, self.word, self.text = name, letter.strip("'").strip("0"), argument, word, text


def text_of(literals):
    return ast.literal_eval(f"({literals.strip()})")


def read(path):
    """The commands by name, with their options and examples. AssertionError if a row is of another form than this knows."""
    table = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    commands = {}
    rows = 0
    for found in re.finditer(rf"^COMMAND\((\w+),\s*{STRING},\s*(\w+),\s*(true|false),\s*{STRING},\s*{STRING}\)", table, re.M):
        name, operands, word, first, summary, about = found.groups()
        commands[name] = Command(name, text_of(operands), word, first, text_of(summary), text_of(about))
        rows += 1
    for found in re.finditer(rf"^OPTION\((\w+),\s*(\w+),\s*('.'|0),\s*{STRING},\s*(\w+),\s*{STRING}\)", table, re.M):
        command, name, letter, argument, word, text = found.groups()
        commands[command].options.append(Option(name, letter, text_of(argument), word, text_of(text)))
        rows += 1
    for found in re.finditer(rf"^EXAMPLE\((\w+),\s*{STRING}\)", table, re.M):
        commands[found[1]].examples.append(text_of(found[2]))
        rows += 1
    assert rows == len(re.findall(r"^(?:COMMAND|OPTION|EXAMPLE)\(", table, re.M)), f"{path} has rows that this cannot read"
    return commands

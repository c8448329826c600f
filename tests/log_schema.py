"""Lines of logs against docs/log.schema.json: as a reader may hold them against it, and as the library has to write them."""
import copy
import json
import pathlib
import re
import warnings

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jsonschema
except ImportError:  # on a machine with a GPU, where nothing is installed
    jsonschema = None

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[1] / "docs/log.schema.json").read_text(encoding="utf-8"))
DEFINITIONS = SCHEMA["$defs"]


def strict(schema):
    """The same without members that it does not name: what the library writes is all in the table."""
    schema = copy.deepcopy(schema)
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    return schema


def words():
    """Names of members whose text is one of several, or has a form."""
    members = [item for definition in DEFINITIONS.values() for item in definition["properties"].items()]
    return {name for name, member in members if {"enum", "const", "pattern"} & set(member)}


WORDS = words()
# Lines that differ in these only have one shape: numbers that are not negative, and addresses.
FIGURE = re.compile(r'(?<=[:,\[])(?<!"v":)\d+(\.\d+)?(?=[,}\]])|(?<="0x)[0-9a-f]+(?=")')


def shape(value, name=""):
    """What a validator can tell two values apart by: names, types, and words where only some are allowed."""
    if isinstance(value, dict):
        return tuple((key, shape(one, key)) for key, one in value.items())
    if isinstance(value, list):
        return frozenset(shape(one) for one in value)
    if isinstance(value, str):
        if name == "ptr":
            return re.fullmatch("0x[0-9a-f]+", value) is not None
        return value if name in WORDS else str
    if name in WORDS:
        return value
    return (type(value), value < 0 if isinstance(value, (int, float)) else None)


class Lines:
    """Validators of each kind, made once; lines of a shape that was seen are not looked at again."""

    def __init__(self):
        made = strict(SCHEMA)
        self.seen = set()
        self.validators = {}
        for name, definition in made["$defs"].items():
            if name.startswith("kind_"):
                whole = {"$schema": SCHEMA["$schema"], "$defs": made["$defs"], **definition}
                self.validators[name.removeprefix("kind_")] = jsonschema.Draft202012Validator(whole)

    def check(self, record, line=None):
        """Raises jsonschema.ValidationError; KeyError of a kind that is not in the schema. A `line` is told apart faster."""
        text = line and FIGURE.sub(lambda figure: "0.0" if figure[1] else "0", line)
        if text in self.seen:
            return
        key = shape(record)
        if key not in self.seen:
            self.validators[record["kind"]].validate(record)
            self.seen.add(key)
        if text:
            self.seen.add(text)


_lines = None


def check(records, lines=None):
    """Each is a line as the library may write it. `lines`: the same as text. Nothing where there is no jsonschema."""
    global _lines
    if jsonschema is None:
        return
    _lines = _lines or Lines()
    for record, line in zip(records, lines or [None] * len(records), strict=True):
        _lines.check(record, line)

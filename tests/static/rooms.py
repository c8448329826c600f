"""What the include paths of a house cannot refuse: rooms.py SOURCE_ROOT

A house is a folder whose rooms are folders; its meson.build lists them, lowest first. A room sees the headers of the rooms below
it by their bare names. So
- no include reaches a header of the house by a path ("../doctor/doctor.h", "cli/put.h");
- no header of a house has the name of another header in the folders beside it: which one is meant would depend on the file that
  includes it;
- each file is in a room, and each room has one header that opens with "ROOM: " and says what the room is for;
- docs/design.md has a row for each room, and no others.
"""
import collections
import pathlib
import re
import sys

PRODUCT = ("policy", "src", "shim")
# folder: (its heading in docs/design.md; folders in which each header's name is found once; rooms that its list does not have; files that are in no room;
# folders that are no rooms of it)
HOUSES = {
    "policy": ("The rooms of policy/", PRODUCT, ("gen",), (), ()),  # the programs of gen run while we build: they see all rooms
    "src": ("The rooms of src/", PRODUCT, (), ("runtime.c", "runtime.h"), ("cli", "vendor/abi")),
    "src/cli": ("The rooms of the command", PRODUCT, (), ("main.c",), ()),
    "tests/sim": ("The rooms of the simulated GPU", (*PRODUCT, "tests"), (), (), ()),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def by_path(includes, headers):
    """Of (file, what it includes) those that name a header of the house by a path."""
    return [f"{file}: #include \"{name}\": a header of a room is included by its bare name" for file, name in includes
            if "/" in name and ((".." in name.split("/")) or name.split("/")[-1] in headers)]


def ambiguous(house, paths):
    """Of paths in the tree those whose name another one has, if either is in the house."""
    named = collections.defaultdict(list)
    for path in paths:
        named[path.rpartition("/")[2]].append(path)
    return [f"{' and '.join(found)}: one name for two headers" for found in named.values()
            if len(found) > 1 and any(path.startswith(house + "/") for path in found)]


def unsaid(house, rooms, openings):
    """Rooms without exactly one header that opens with the room's name. openings: {room: first words of its headers}"""
    return [f"{house}/{room}: one header opens with \"{room}: \" and says what the room is for" for room in rooms
            if sum(text.startswith(f"/*\n * {room}: ") for text in openings.get(room, [])) != 1]


def unlisted(heading, rooms, design):
    """Rooms without a row in the table below that heading of docs/design.md, and rows without a room."""
    table = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", design, re.M | re.S)
    rows = re.findall(r"^\| `(\w+)/` \|", table[1], re.M) if table else []
    return [f"docs/design.md: {heading}: {room}: no room, or no row" for room in sorted(set(rooms) ^ set(rows))]


def check_self():
    """What it refuses, so that it cannot become blind."""
    for name in ("../doctor/doctor.h", "cli/put.h", "doctor/doctor.h", "trace/../put.h"):
        assert by_path([("a.c", name)], {"put.h", "doctor.h"}), name
    assert not by_path([("a.c", "put.h"), ("a.c", "abi/cuda.h")], {"put.h"})
    cli, sim = "src/cli", "tests/sim"
    assert ambiguous(cli, ["src/log/log.h", "src/cli/log/log.h"]) and ambiguous(cli, ["src/cli/a/x.h", "src/cli/b/x.h"])
    assert ambiguous(sim, ["tests/bench/a.h", "tests/sim/b/a.h"]) and not ambiguous(sim, ["tests/a/x.h", "src/cli/b/x.h"])
    assert not ambiguous(cli, ["src/log/log.h", "policy/text/log.h", "src/cli/log/log_reader.h"])
    for openings in ({"top": ["/* top */"]}, {}, {"top": ["/*\n * top: a"] * 2}):
        assert unsaid(cli, ["top"], openings), openings
    assert not unsaid(cli, ["top"], {"top": ["/*\n * top: a", "/* b */"]})
    design = "## The rooms\n| `top/` | a |\n## More\n| `log/` | b |\n"
    assert unlisted("The rooms", ["top", "log"], design) and unlisted("The rooms", [], design) and unlisted("Rooms", ["top"], design)
    assert not unlisted("The rooms", ["top"], design) and not unlisted("More", ["log"], design)


def problems(root, house, heading, folders, more_rooms, outside, apart):
    folder = root / house
    rooms = [*re.findall(r"^  \['(\w+)', \[", (folder / "meson.build").read_text(encoding="utf-8"), re.M), *more_rooms]
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*")
             if path.suffix in (".c", ".h", ".def") and not any(path.is_relative_to(folder / other) for other in apart)}
    headers = [path for path in texts if path.suffix != ".c"]
    includes = [(str(path.relative_to(root)), name) for path, text in texts.items() for name in INCLUDE.findall(text)]
    tree = [str(path.relative_to(root)) for folder in folders for path in (root / folder).rglob("*")
            if path.suffix in (".h", ".def")]
    openings = {room: [texts[path] for path in headers if path.parent.name == room] for room in rooms}
    assert len(rooms) > 5 and len(includes) > 50 and len(tree) > 100, (house, len(rooms), len(includes), len(tree))
    return (by_path(includes, {path.name for path in headers}) + ambiguous(house, tree) + unsaid(house, rooms, openings) +
            unlisted(heading, rooms, (root / "docs/design.md").read_text(encoding="utf-8")) +
            [f"{path}: in no room" for path in texts if path.parent.name not in rooms and path.name not in outside])


def main(root):
    check_self()
    found = [problem for house, about in HOUSES.items() for problem in problems(root, house, *about)]
    print("\n".join(found))
    sys.exit(bool(found))


main(pathlib.Path(sys.argv[1]))

"""What the include paths of a house cannot refuse: rooms.py SOURCE_ROOT

A house is a folder whose rooms are folders; its meson.build lists them, each with the rooms that it sees, lowest first.
A room sees the headers of those rooms by their bare names. So
- no include reaches a header of the house by a path ("../doctor/doctor.h", "cli/put.h");
- no header of the command has the name of another header of the command, the library or the policy: which one is meant
  would depend on the file that includes it;
- each file is in a room, and each room has one header that opens with "ROOM: " and says what the room is for.
"""
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# folder: (rooms that its list of rooms does not have; files that are in no room).
HOUSES = {
    "src/cli": ((), ("main.c",)),
    "policy": (("gen",), ()),  # its programs run while we build: they see all rooms
}


def by_path(includes, headers):
    """Of (file, what it includes) those that name a header of the house by a path."""
    return [f"{file}: #include \"{name}\": a header of a room is included by its bare name" for file, name in includes
            if "/" in name and ((".." in name.split("/")) or name.split("/")[-1] in headers)]


def ambiguous(paths):
    """Of paths in the tree those whose name another one has, if either is in a house."""
    named = collections.defaultdict(list)
    for path in paths:
        named[path.rpartition("/")[2]].append(path)
    return [f"{' and '.join(found)}: one name for two headers" for found in named.values()
            if len(found) > 1 and any(path.startswith(tuple(f"{house}/" for house in HOUSES)) for path in found)]


def unsaid(house, rooms, openings):
    """Rooms without exactly one header that opens with the room's name. openings: {room: first words of its headers}"""
    return [f"{house}/{room}: one header opens with \"{room}: \" and says what the room is for" for room in rooms
            if sum(text.startswith(f"/*\n * {room}: ") for text in openings.get(room, [])) != 1]


def check_self():
    """What it refuses, so that it cannot become blind."""
    for name in ("../doctor/doctor.h", "cli/put.h", "doctor/doctor.h", "trace/../put.h"):
        assert by_path([("a.c", name)], {"put.h", "doctor.h"}), name
    assert not by_path([("a.c", "put.h"), ("a.c", "place/pool.h")], {"put.h"})
    assert ambiguous(["src/log.h", "src/cli/log/log.h"]) and ambiguous(["src/cli/a/x.h", "src/cli/b/x.h"])
    assert ambiguous(["src/log.h", "policy/text/log.h"]) and not ambiguous(["src/log.h", "src/cli/log/log_reader.h"])
    assert unsaid("a", ["top"], {"top": ["/* top */"]}) and unsaid("a", ["top"], {})
    assert unsaid("a", ["top"], {"top": ["/*\n * top: a"] * 2})
    assert not unsaid("a", ["top"], {"top": ["/*\n * top: a", "/* b */"]})


def check(root, house):
    more_rooms, outside = HOUSES[house]
    folder = root / house
    rooms = [*re.findall(r"^  \['(\w+)', \[", (folder / "meson.build").read_text(encoding="utf-8"), re.M), *more_rooms]
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".c", ".h", ".def")}
    headers = [path for path in texts if path.suffix != ".c"]
    includes = [(str(path.relative_to(root)), name) for path, text in texts.items() for name in INCLUDE.findall(text)]
    openings = {room: [texts[path] for path in headers if path.parent.name == room] for room in rooms}
    assert len(rooms) > 5 and len(includes) > 50, (house, len(rooms), len(includes))
    return (by_path(includes, {path.name for path in headers}) + unsaid(house, rooms, openings) +
            [f"{path}: in no room" for path in texts if path.parent.name not in rooms and path.name not in outside])


def main(root):
    check_self()
    tree = [str(path.relative_to(root)) for folder in ("policy", "src", "shim") for path in (root / folder).rglob("*")
            if path.suffix in (".h", ".def")]
    assert len(tree) > 100, len(tree)
    problems = ambiguous(tree) + [problem for house in HOUSES for problem in check(root, house)]
    print("\n".join(problems))
    sys.exit(bool(problems))


main(pathlib.Path(sys.argv[1]))

"""What the include paths of a house's meson.build cannot refuse: rooms.py SOURCE_ROOT

A room of a house sees the headers of the rooms below it, by their bare names. So
- no include reaches a header of the house by a path ("../doctor/doctor.h", "cli/put.h");
- no two headers of the house and of the folders beside it have the same name: which one is meant would depend on who asks;
- each room has one header that opens with "ROOM: ", where it says what the room is for.
"""
import collections
import pathlib
import re
import sys

# Houses: the folders in which each header's name must be found once, and the files that are in no room.
HOUSES = {
    "src/cli": (("policy", "src", "shim"), {"main.c"}),
    "tests/sim": (("policy", "src", "shim", "tests"), set()),
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


def check_self():
    """What it refuses, so that it cannot become blind."""
    for name in ("../doctor/doctor.h", "cli/put.h", "doctor/doctor.h", "trace/../put.h"):
        assert by_path([("a.c", name)], {"put.h", "doctor.h"}), name
    assert not by_path([("a.c", "put.h"), ("a.c", "shared_chunks.h")], {"put.h"})
    cli, sim = "src/cli", "tests/sim"
    assert ambiguous(cli, ["src/log.h", "src/cli/log/log.h"]) and ambiguous(cli, ["src/cli/a/x.h", "src/cli/b/x.h"])
    assert ambiguous(sim, ["tests/bench/a.h", "tests/sim/b/a.h"]) and not ambiguous(sim, ["tests/a/x.h", "src/cli/b/x.h"])
    assert not ambiguous(cli, ["src/log.h", "policy/log.h", "src/cli/log/log_reader.h"])
    for openings in ({"top": ["/* top */"]}, {}, {"top": ["/*\n * top: a"] * 2}):
        assert unsaid(cli, ["top"], openings), openings
    assert not unsaid(cli, ["top"], {"top": ["/*\n * top: a", "/* b */"]})


def problems(root, house, folders, outside):
    rooms = re.findall(r"^  \['(\w+)', \[", (root / house / "meson.build").read_text(encoding="utf-8"), re.M)
    texts = {path: path.read_text(encoding="utf-8") for path in (root / house).rglob("*") if path.suffix in (".c", ".h", ".def")}
    headers = [path for path in texts if path.suffix != ".c"]
    includes = [(str(path.relative_to(root)), name) for path, text in texts.items() for name in INCLUDE.findall(text)]
    tree = [str(path.relative_to(root)) for folder in folders for path in (root / folder).rglob("*")
            if path.suffix in (".h", ".def")]
    openings = {room: [texts[path] for path in headers if path.parent.name == room] for room in rooms}
    assert len(rooms) > 5 and len(includes) > 100 and len(tree) > 100, (len(rooms), len(includes), len(tree))
    return (by_path(includes, {path.name for path in headers}) + ambiguous(house, tree) + unsaid(house, rooms, openings) +
            [f"{path}: in no room" for path in texts if path.parent.name not in rooms and path.name not in outside])


def main(root):
    check_self()
    found = [problem for house, about in HOUSES.items() for problem in problems(root, house, *about)]
    print("\n".join(found))
    sys.exit(bool(found))


main(pathlib.Path(sys.argv[1]))

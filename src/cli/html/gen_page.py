"""Build-time tool: gen_page.py NOTICE PART… prints the page of `spill report --html` as C: what is before its data, and behind.

Of NOTICE a page takes what is above the line of dashes: dygraphs. Of the parts page.html is the frame; {{NAME}} in it stands for the parts of that kind, in the order in which they are given.
Without dygraphs among them both are empty: the command says so.
"""
import base64
import hashlib
import html
import pathlib
import sys


def without_maps(text):
    """A browser's tools would ask for the source maps, and find nothing."""
    return "\n".join(line for line in text.splitlines() if "sourceMappingURL=" not in line) + "\n"


def literal(text):
    """In octal, with all its digits, so that no digit that follows is taken for one of them."""
    lines = []
    data = text.encode()
    for at in range(0, len(data), 100):
        lines.append('\t"' + "".join(
            chr(c) if 0x20 <= c < 0x7f and c not in b'"\\?' else f"\\{c:03o}" for c in data[at:at + 100]) + '"')
    return "\n".join(lines) or '\t""'


def page(notice, parts):
    scripts = {"library": parts["dygraph.min.js"],
               "script": '"use strict";\n(() => {\n' + "".join(
                   text for name, text in parts.items() if name.endswith(".js") and not name.startswith("dygraph")) + "})();\n"}
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts.values()]
    values = {**scripts, "hashes": " ".join(f"'sha256-{text}'" for text in hashes), "notice": html.escape(notice),
              "styles": parts["dygraph.min.css"] + "".join(
                  text for name, text in parts.items() if name.endswith(".css") and not name.startswith("dygraph"))}
    frame = parts["page.html"]
    for name, value in values.items():
        before, mark, after = frame.partition("{{" + name + "}}")
        if not mark:
            sys.exit(f"gen_page: page.html has no {{{{{name}}}}}")
        frame = before + value + after
    return frame.split("{{data}}")


def main():
    notice, *paths = map(pathlib.Path, sys.argv[1:])
    licence, line, _ = notice.read_text(encoding="utf-8").partition("\n----\n")
    if not line:
        sys.exit("gen_page: NOTICE has no line of dashes")
    parts = {path.name: without_maps(path.read_text(encoding="utf-8")) for path in paths}
    before, after = page(licence, parts) if "dygraph.min.js" in parts else ("", "")
    print('#include "report.h"\n')
    for name, text in (("before", before), ("after", after)):
        print(f"const char cli_page_{name}[] =\n{literal(text)};")


main()

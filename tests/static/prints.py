"""No text of others reaches the output of `spill` raw: prints.py SOURCE_ROOT

The name of a file, an argument, a variable or a log may hold characters that steer a terminal. So in src/cli
- printf and fprintf have no %s and no %c: use cli_printf and cli_fprintf (src/cli/base/put.h);
- fputs, puts and putchar write only literals;
- KEPT lists any other call that writes, with the reason why it writes nothing foreign. A stale entry is an error.
"""
import glob
import re
import sys

BY_FORMAT = {"printf": 0, "fprintf": 1}
OURS = {"cli_printf": 0, "cli_fprintf": 1, "cli_usage": 1, "cli_call_refuse": 1, "doctor_find": 1, "cli_top_add": 2}
LITERAL = {"fputs", "puts", "putchar", "putc", "fputc", "perror", "mvaddch", "addch"}
OTHERS = {"fwrite", "write", "writev", "dprintf", "vdprintf", "vprintf", "vfprintf", "psignal", "fputs_unlocked", "fwrite_unlocked", "putc_unlocked", "putchar_unlocked", "fputwc", "fputws", "wprintf", "fwprintf", "send",
          "printw", "wprintw", "mvprintw", "waddch", "insstr", "addwstr", "add_wch", "mvadd_wch",
          "addstr", "addnstr", "mvaddstr", "mvaddnstr", "waddstr", "waddnstr", "mvwaddstr", "addchstr", "cli_vfprintf"}
# By policy/text, which knows few conversions. Each with the position of its format.
TEXTS = {"spill_text_format": 1, "spill_block_put": 1, "spill_block_line": 1, "spill_option_fail": 3, "spill_ini_fail": 2}
KNOWN = {"%s", "%u", "%lu", "%llu", "%zu", "%%"}
# Of a file or socket: the library's log.
WRITES = {"write", "send"}

KEPT = {
    "base/put.c": {
        "fwrite(text, 1, plain, out)": "ASCII that is shown",
        "fwrite(text, 1, character.bytes, out)": "looked at",
        "fprintf(out, format, conversion->width, conversion->precision, number)": "a number",
        "fprintf(out, format, conversion->width, conversion->precision, va_arg(*arguments, double))": "a number",
        "fwrite(format, 1, literal, out)": "of a format, which is ours",
        "fwrite(text, 1, size, out)": "print_format wrote it",
        "cli_vfprintf(out, format, arguments)": "the caller's",
        "cli_vfprintf(stdout, format, arguments)": "the caller's",
    },
    "base/cli.c": {
        "cli_vfprintf(stderr, format, arguments)": "the caller's",
    },
    "base/json_out.c": {
        "putc(c, output)": "of JSON (policy/text/json.c)",
        "fwrite(text, 1, length, output)": "JSON (policy/text/json.c)",
    },
    "report/page.c": {
        "fputs(cli_page_before, out)": "the page's own text",
        "fputs(cli_page_after, out)": "the page's own text",
    },
    "top/about.c": {"mvaddstr(y, 0, line)": "cli_top_pad wrote it"},
    "top/draw.c": {
        "mvaddstr(0, COLS - (int)strlen(clock), clock)": "strftime wrote it",
        "mvaddstr(y, 2, name)": "cli_top_pad wrote it",
        "mvaddnstr(y, left + room + 2, figures, COLS - left - room - 2)": "sizes",
        "mvaddstr(y, x, cell)": "cli_top_pad wrote it",
    },
}

TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
QUOTED = re.compile(TEXT.pattern + r"|'(?:[^'\\]|\\.)*'")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|(" + QUOTED.pattern + ")", re.S)
CALL = re.compile(r"(?<![\w.>])(\w+)\(")
CONVERSION = re.compile(r"%(%|[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d*))?(?:hh|h|ll|l|z|j|t|L)?([a-zA-Z]|$))")


def blanked(text):
    """The same length, without what stands in quotes, so that brackets and commas are the language's."""
    return QUOTED.sub(lambda found: found[0][0] + "_" * (len(found[0]) - 2) + found[0][0], text)


def arguments(text, at):
    """Those of the call whose bracket is before `at`, and where it ends."""
    plain, depth, begin, parts = blanked(text), 1, at, []
    while True:
        if plain[at] in "([{":
            depth += 1
        elif plain[at] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and plain[at] == ","):
            parts.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            return parts, at + 1
        at += 1


def is_literal(expression):
    """Texts or characters in quotes, with macros among them, or C ? A : B of such."""
    plain = QUOTED.sub(lambda found: '"' + "_" * (len(found[0]) - 2) + '"', expression)
    choice = plain.find("?")
    if choice < 0:
        return re.fullmatch(r'\s*(?:[A-Z]\w+\s*)*"_*"(?:\s*"_*"|\s*[A-Z]\w+|\s*\bname\b)*\s*', plain) is not None
    depth, at = 0, choice + 1
    while at < len(plain) and (plain[at] != ":" or depth):
        depth += {"?": 1, ":": -1}.get(plain[at], 0)
        at += 1
    return is_literal(expression[choice + 1:at]) and is_literal(expression[at + 1:])


def joined(expression, number="d"):
    return "".join(found[1:-1] if found.startswith('"') else number for found in re.findall(TEXT.pattern + r"|PRI\w+", expression))


def conversions(expression):
    return {found[1] for found in CONVERSION.findall(joined(expression)) if found[0] != "%"}


def wrong(name, parts):
    if name in OURS:
        form = parts[OURS[name]] if len(parts) > OURS[name] else ""
        if not is_literal(form):
            return "its format is not in quotes"
        if any(re.search(r"\\[^\\\"]", text) for part in parts[OURS[name] + 1:] for text in TEXT.findall(part)):
            return "in a text a newline is not shown: it is for the format"
        return "cli_printf has no such conversion" if name != "doctor_find" and conversions(form) - set("scdiuxefg") else ""
    if name in TEXTS:
        form = parts[TEXTS[name]] if len(parts) > TEXTS[name] else ""
        if not is_literal(form):
            return "its format is not in quotes"
        return "spill_text_format has no such conversion" if {found[0] for found in CONVERSION.finditer(joined(form, "lu"))} - KNOWN else ""
    if name in BY_FORMAT:
        form = parts[BY_FORMAT[name]] if len(parts) > BY_FORMAT[name] else ""
        if not is_literal(form):
            return "its format is not in quotes"
        return "text is for cli_printf and cli_fprintf" if conversions(form) & set("scSC") else ""
    if name in LITERAL:
        return "" if is_literal(parts[2 if name == "mvaddch" else 0]) else "it is not in quotes"
    return "nothing says what it writes" if name in OTHERS else ""


def in_rooms(path):
    """ROOM/FILE, as KEPT has it."""
    return path.rpartition("/src/cli/")[2]


def look_at(path):
    with open(path, encoding="utf-8") as file:
        text = COMMENT.sub(lambda found: found[1] or " ", file.read())
    assert not re.search(r"#include <(err|error|syslog)\.h>", text), path
    kept = dict(KEPT.get(in_rooms(path), {}))
    calls = 0
    problems = []
    for found in CALL.finditer(blanked(text)):
        name = found[1]
        if name not in {*BY_FORMAT, *OURS, *TEXTS, *LITERAL, *OTHERS} or re.search(r"\b(void|int|size_t|bool)\s+\*?$", text[:found.start()]):
            continue
        parts, end = arguments(text, found.end())
        calls += 1
        call = re.sub(r"\s+", " ", text[found.start():end])
        why = wrong(name, parts)
        if why and call in KEPT.get(in_rooms(path), {}):
            kept.pop(call, None)
        elif why:
            problems.append(f"{path}: {call}: {why}")
    return calls, problems + [f"{path}: no such call any more, or none that needs to be kept: {call}" for call in kept]


def check_self():
    """What it refuses, so that it cannot become blind."""
    for name, parts in (("printf", ['"%s"', "x"]), ("printf", ["x"]), ("fprintf", ["f", '"a" PRIu64 "%-8s"']), ("fputs", ["x", "f"]),
                        ("puts", ['a ? "x" : y']), ("fwrite", ["x"]), ("printf", ['"%.*s"']), ("putchar", ["c"]), ("printf", ['"%c"']),
                        ("cli_printf", ["x"]), ("cli_usage", ["a", "x"]), ("perror", ["x"]), ("cli_printf", ['"%p"']), ("cli_printf", ['"%s"', 'a ? "" : "\\n"']),
                        ("printf", ['a ? "x" : "%s"']), ("spill_text_format", ["t", "x"]), ("spill_text_format", ["t", '"%5s"']),
                        ("spill_ini_fail", ["f", "0", '"%d"']), ("spill_block_put", ["b", '"%.2f"'])):
        assert wrong(name, parts), (name, parts)
    for name, parts in (("printf", ['"%%s %d\\n"']), ("fprintf", ["f", '"%" PRIu64 " x"']), ("fputs", ['a ? "x" : "y"']),
                        ("spill_text_format", ["t", '"%s %u%% %" PRIu64 " x"']), ("putchar", ["'\\n'"]), ("cli_printf", ['"%s"']), ("printf", ['"%.1f"'])):
        assert not wrong(name, parts), (name, parts, wrong(name, parts))


def look_at_texts(path):
    with open(path, encoding="utf-8") as file:
        text = COMMENT.sub(lambda found: found[1] or " ", file.read())
    calls = [(found[1], arguments(text, found.end())[0]) for found in CALL.finditer(blanked(text))
             if found[1] in TEXTS and not re.search(r"\b(void|int|bool)\s+$", text[:found.start()])]
    return [f"{path}: {name}({', '.join(parts)}): {wrong(name, parts)}" for name, parts in calls if wrong(name, parts)]


def look_at_library(root):
    """libspill.so writes to stderr in stderr.c only; several lines at once are made by stderr_block.c."""
    problems = []
    for path in sorted(path for folder in ("src", "shim", "policy") for path in glob.glob(f"{root}/{folder}/**/*.c", recursive=True)
                       if "/src/cli/" not in path):
        name = path.rsplit("/", 1)[-1]
        with open(path, encoding="utf-8") as file:
            text = blanked(COMMENT.sub(lambda found: found[1] or " ", file.read()))
        if name.startswith("gen_"):
            continue
        problems += look_at_texts(path)
        raw = {found for found in CALL.findall(text)} & {*BY_FORMAT, *LITERAL, *OTHERS} - WRITES
        problems += [f"{path}: {call}: a line for people is for spill_stderr_line" for call in sorted(raw)]
        if "spill_stderr_lines(" in text and name not in ("stderr.c", "postmortem.c"):
            problems.append(f"{path}: spill_stderr_lines: one line is for spill_stderr_line")
        if "STDERR_FILENO" in text and name not in ("stderr.c", "fd.c"):
            problems.append(f"{path}: STDERR_FILENO: it is for stderr.c")
    return problems


root = sys.argv[1]
check_self()
paths = sorted(path for path in glob.glob(f"{root}/src/cli/**/*.c", recursive=True) if not path.endswith("/gen_commands.c"))
assert set(KEPT) <= set(map(in_rooms, paths))
sums = [look_at(path) for path in paths]
found = [problem for _, problems in sums for problem in problems] + look_at_library(root)
assert sum(calls for calls, _ in sums) > 300, "where are the calls?"
print("\n".join(found))
sys.exit(bool(found))

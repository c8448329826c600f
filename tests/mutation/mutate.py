"""Changes of single lines of C that a test should notice: each as a class, the line's number, and the line as it is then."""
import re

# On a line without comments, texts and directives. What stands before and after the match stays.
OPERATORS = [
    ("condition", r" && ", " || "),
    ("condition", r" \|\| ", " && "),
    ("condition", r" == ", " != "),
    ("condition", r" != ", " == "),
    ("bound", r" < ", " <= "),
    ("bound", r" <= ", " < "),
    ("bound", r" > ", " >= "),
    ("bound", r" >= ", " > "),
    ("bound", r" [+-] 1\b", ""),
    ("sum", r" \+ ", " - "),
    ("sum", r" - ", " + "),
    ("sum", r" \+= ", " -= "),
    ("sum", r" -= ", " += "),
    ("result", r"\breturn true;", "return false;"),
    ("result", r"\breturn false;", "return true;"),
    ("atomic", r"\batomic_fetch_add\b", "atomic_fetch_sub"),
    ("atomic", r"\batomic_fetch_sub\b", "atomic_fetch_add"),
    ("atomic", r"\batomic_fetch_or\b", "atomic_fetch_xor"),
    ("atomic", r"(?=\batomic_compare_exchange_)", "!"),
    ("order", r"\bmemory_order_(?:acquire|release|acq_rel|seq_cst)\b", "memory_order_relaxed"),
]
# A whole statement that is a call. The classes name what is left out.
CALL = re.compile(r"^\t+(?:\(void\))?([a-z]\w*(?:->\w+|\.\w+)*)\(.*\);$")
CLASSES = [("lock", re.compile(r"(?:^|_)(?:un|try)?lock(?:_|$)|mutex|rwlock|mover|gate|_seq_|_ours_")),
           ("charge", re.compile(r"account|charge|ledger")), ("atomic", re.compile("^atomic_"))]
IF = re.compile(r"^(\t+(?:\} else )?(?:if|while) )\((.*)\)( \{)?$")


def masked(text):
    """The text with comments, strings and directives as underlines, so that places stay the same."""
    def blank(match):
        return re.sub(r"[^\n]", "_", match[0])

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*'
    return re.sub(pattern, blank, text, flags=re.DOTALL | re.MULTILINE)


def balanced(text):
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def in_function(lines):
    """For each line: is it within a function's body? Those begin and end at the left edge (clang-format)."""
    inside = False
    for line in lines:
        inside = inside and line != "}"
        yield inside
        inside = inside or line == "{"


def of_line(line, mask):
    """Pairs of a class and the changed line."""
    for name, pattern, other in OPERATORS:
        for match in re.finditer(pattern, mask):
            yield name, line[:match.start()] + other + line[match.end():]
    call = CALL.match(mask)
    if call and balanced(mask):
        name = next((name for name, pattern in CLASSES if pattern.search(call[1])), "call")
        yield name, line[:len(line) - len(line.lstrip("\t"))] + "{}"  # compilers warn of a condition before a lone ";"
    condition = IF.match(mask)
    if condition and balanced(condition[2]):
        begin, end = condition.span(2)
        yield "condition", f"{line[:begin]}!({line[begin:end]}){line[end:]}"


def of_file(text):
    """(class, number of the line from 1, changed line) of each change."""
    lines, masks = text.split("\n"), masked(text).split("\n")
    for number, (line, mask, inside) in enumerate(zip(lines, masks, in_function(masks)), 1):
        if inside:
            for name, changed in of_line(line, mask):
                yield name, number, changed

#!/bin/sh
# man.sh GEN_MAN: every form that a generated document has, as roff. What roff would take for its own must come out as text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/expected" <<'END'
.TH x.conf 5 "" "libspill"
.SH NAME
x.conf \- files of x
.nh
.ad l
.SH DESCRIPTION
.PP
.PP
A line with \fBco\-de\fR, a \e and a well-known word
\&.at the beginning, it\(aqs here and in \(ti/x
.PP
.SH "FOR ONE: [app NAME]"
.PP
.PP
.RS 4
.EX
[device]
\&.limit = a\e\-b
.EE
.RE
.PP
.TP
\fBx.y\fR
variable: \fBX\fR; default: 1.
.br
what it is
.TP
\fBx.z\fR
variable: \fBZ\fR.
.br
\&.and that
.PP
.TP
key
alone
.PP
.IP \(bu 2
\fBa\fR: one
.PP
.IP 12. 4
See the words and \fBcode\fR [here], \fB[not](a link)\fR
and there
.PP
.SH "SEE ALSO"
\fBspill\fR(1), \fBspill.conf\fR(5), \fBspill\-log\fR(5), \fBlibspill\fR(7)
END
"$1" x.conf 5 "files of x" >"$folder/made" <<'END'
# Title

Generated from `x`; not for manuals.

A line with `co-de`, a \ and a well-known word
.at the beginning, it's here and in ~/x

## For one: `[app NAME]`

    [device]
    .limit = a\-b

| option | variable | default | meaning |
|---|---|---|---|
| `x.y` | `X` | 1 | what it is |
| `x.z` | `Z` | | .and that |

| key | meaning |
|---|---|
| key | alone |

- `a`: one

<!-- not for manuals -->
12. See [the words](x.md#y) and [`code`](z.md) [here], `[not](a link)`
   and there
END
diff -u "$folder/expected" "$folder/made"

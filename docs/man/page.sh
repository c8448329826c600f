#!/bin/sh
# page.sh SCDOC FILE.scd: the page as roff. scdoc asks for no hyphenation in front of .TH, which switches it on again in groff.
set -eu
page=$("$1" <"$2")
printf '%s\n' "$page" | sed '/^\.TH /a .nh'

"""Fails unless the lines of progress that a terminal got are drawn over each other and fit its width, which became
another where there are two. Usage: read_terminal.py TYPESCRIPT COLUMNS [COLUMNS]"""

import re
import sys

text = open(sys.argv[1], encoding="utf-8", newline="").read()
drawn = [line for line in re.findall(r"\r([^\r\n]*)\x1b\[K", text) if line]
assert drawn, text
first, last = int(sys.argv[2]), int(sys.argv[-1])
assert all(len(line) < first for line in drawn), drawn
assert len(drawn[-1]) < last, drawn
if first >= 80:
    assert re.fullmatch(r"epoch 1/\d+ \|.{8,40}\| +\d+/96  loss \S+.*  [\d:]+ left", drawn[0]), drawn
if first != last:
    assert len(drawn[0]) >= last, drawn

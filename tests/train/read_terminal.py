"""Fails unless the lines of progress that a terminal got fit its width, and are drawn over each other.
Usage: read_terminal.py TYPESCRIPT COLUMNS"""

import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
columns = int(sys.argv[2])
drawn = [line for line in re.findall(r"\r([^\r\n]*)\x1b\[K", text) if line]
assert drawn or columns < 4, "nothing was drawn"
for line in drawn:
    assert len(line) < columns, line
assert columns < 24 or any("left" in line for line in drawn), drawn
assert columns < 80 or any(re.search(r"epoch \d/\d \|.*\| .*/96  loss .* left", line) for line in drawn), drawn

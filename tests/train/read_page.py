"""Fails unless a page that dashboard has made is well-formed, needs no other file, and contains the texts given.
Usage: read_page.py FILE.html TEXT..."""

import re
import sys
import xml.dom.minidom

page = open(sys.argv[1], encoding="utf-8").read()
xml.dom.minidom.parseString(page)
for what in [r"<script", r"<link", r"@import", r"url\(", r"(src|href)='(?!data:)"]:
    assert not re.search(what, page), what
for number in ["nan", "inf"]:
    assert not re.search(rf"[='>,\s-]{number}['<,%\s]", page), number
for text in sys.argv[2:]:
    assert text in page, text

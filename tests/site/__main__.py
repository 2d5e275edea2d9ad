"""Writes the sources of the site, finishes and checks it, or draws its pictures."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.site.built import make_local, problems_in
from tests.site.cast import drawn_cast, record
from tests.site.pages import write_sources
from tests.site.pictures import FOLDER, write_pictures

match sys.argv[1:]:
    case ["sources", folder]:
        write_sources(Path(folder))
    case ["check", folder]:
        make_local(Path(folder))
        found = problems_in(Path(folder))
        print(*found, sep="\n", end="\n" if found else "")
        pages = len(list(Path(folder).rglob("*.html")))
        print(f"{pages} pages, {len(found)} problems: {folder}/index.html")
        sys.exit(1 if found or not pages else 0)
    case ["pictures"]:
        print(*write_pictures(), sep="\n")
    case ["cast"]:
        title = "Two agents meet: attach, up, call, call again"
        (FOLDER / "walk.svg").write_text(drawn_cast(record(), title), "utf-8")
    case _:
        sys.exit("python -m tests.site sources|check FOLDER, pictures or cast")

"""Checks of the built pages: links, anchors, and nothing that comes from elsewhere."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SHIM = re.compile(r'"https://[^"]*/iframe-worker/shim"')
"What the generator loads from elsewhere so that search works in pages that are files."

_OURS = "site/iframe-worker.js"
"The same file, which is among our sources."

_LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
}
"Elements that a browser fetches something for, with the attribute that names it."


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given.get("href", ""))
        if tag in _LOADED and given.get(_LOADED[tag]):
            self.loaded.append(given[_LOADED[tag]])


def make_local(folder: Path) -> None:
    """Have the pages load from the site what the generator loads from elsewhere."""
    for path in folder.rglob("*.html"):
        text = path.read_text("utf-8")
        way = os.path.relpath(folder / _OURS, path.parent)
        path.write_text(_SHIM.sub(f'"{way}"', text), "utf-8")


def problems_in(folder: Path) -> list[str]:
    """Return what is wrong with a built site, one line each."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = pages[path] = _Page()
        page.feed(path.read_text("utf-8"))
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [
            f"{name}: loads {target} from elsewhere"
            for target in page.loaded
            if urlsplit(target).scheme not in ("", "data")
        ]
        # The page for what is not there is shown at any address.
        for link in page.links if path.name != "404.html" else ():
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to /= "index.html"
            if not to.exists():
                found.append(f"{name}: {link} leads nowhere")
            elif to in pages and unquote(parts.fragment) not in pages[to].anchors:
                found.append(f"{name}: {link}: no such place on that page")
    return found

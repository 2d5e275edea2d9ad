"""Checks of the built pages: links, anchors, and nothing that comes from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["problems_in"]

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
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(given.get("href", ""))
        if tag in _LOADED and given.get(_LOADED[tag]):
            self.loaded.append(given[_LOADED[tag]])


def problems_in(folder: Path) -> list[str]:
    """Return what is wrong with a built site, one line each."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = pages[path] = _Page()
        page.feed(path.read_text("utf-8"))
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        for target in page.loaded:
            if urlsplit(target).scheme not in ("", "data"):
                found.append(f"{name}: loads {target} from elsewhere")
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
            elif parts.fragment and to in pages:
                if unquote(parts.fragment) not in pages[to].anchors:
                    found.append(f"{name}: {link}: no such place on that page")
    return found

# kind: html escaping and templates by str.format
"""Renders search results as HTML fragments."""

import html
from string import ascii_lowercase, digits
from textwrap import dedent

CARD = dedent(
    """\
    <article id="{slug}">
      <h2>{title}</h2>
      <p>{price:>10,.2f} {currency}</p>
      {tags}
    </article>
    """
)
_ALLOWED = frozenset(ascii_lowercase + digits + "-")


def _slug(text: str) -> str:
    slug = text.lower().replace(" ", "-")
    return "".join(ch for ch in slug if ch in _ALLOWED) or "item"


def _tag_list(tags: list[str]) -> str:
    if not tags:
        return "<!-- no tags -->"
    return "<ul>" + "".join(f"<li>{html.escape(tag)}</li>" for tag in tags) + "</ul>"


def render_card(item: dict) -> str:
    return CARD.format(
        slug=_slug(item["title"]),
        title=html.escape(item["title"]),
        price=item.get("price", 0),
        currency=item.get("currency", "EUR"),
        tags=_tag_list(item.get("tags", [])),
    )


def render_link(url: str, label: str) -> str:
    return '<a href="{0}" title="{1!r}">{1}</a>'.format(html.escape(url, quote=True), label)


def render_row(row: dict) -> str:
    return "{name:<8}|{values[0]:^5}|{values[1]:05.1f}".format_map(row)


def strip_entities(text: str) -> str:
    return html.unescape(text).translate({0xA0: " ", ord("\u00ad"): None})

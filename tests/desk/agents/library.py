"""A library."""

from typing import TypedDict


class Book(TypedDict):
    title: str
    authors: list[str]
    year: int


class Record(TypedDict):
    record: str


class Counted(TypedDict):
    authors: int
    title: str


def find_book(isbn: str) -> Book:
    """Look up one book by its ISBN."""
    return {
        "title": f"R&D <of> {isbn[-3:]}",
        "authors": ["Grace Example", "Édouard Muster"],
        "year": 1972,
    }


def find_record(isbn: str) -> Record:
    """Look up one book by its ISBN; the record is an XML text.

    It is `<book year="1972"><title>…</title><author>…</author></book>`, with one or
    more authors.
    """
    return {
        "record": f'<book year="1972"><title>R&amp;D &lt;of&gt; {isbn[-3:]}</title>'
        "<author>Grace Example</author><author>Édouard Muster</author></book>"
    }


def add_book(title: str, authors: list[str], year: int) -> Counted:
    """Add a book to the catalogue; says how many authors it has."""
    return {"authors": len(authors), "title": f"{title} ({year})"}

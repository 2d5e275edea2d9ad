# kind: sorting with several keys, itemgetter, groupby, deepcopy
"""Ranking and grouping of offers."""

import copy
from functools import cmp_to_key
from itertools import groupby
from operator import itemgetter

_ORDER = {"gold": 0, "silver": 1, "bronze": 2}


def rank(offers: list[dict]) -> list[dict]:
    """Best tier first, then rating, price and name; the input is not changed."""
    ranked = copy.deepcopy(offers)
    ranked.sort(key=lambda o: (_ORDER.get(o["tier"], 99), -o.get("rating", 0), o["price"], o["name"].lower()))
    for position, offer in enumerate(ranked, start=1):
        offer["position"] = position
        offer.setdefault("notes", []).append(f"#{position}")
    return ranked


def by_fields(rows: list[dict], fields: list[str]) -> list[dict]:
    """`-name` sorts descending; stable sorts from the last field to the first."""
    result = rows[:]
    for field in reversed(fields):
        descending = field.startswith("-")
        result.sort(key=itemgetter(field.lstrip("-")), reverse=descending)
    return result


def group(rows: list[dict], key: str) -> dict[str, dict]:
    getter = itemgetter(key)
    groups = {}
    for value, members in groupby(sorted(rows, key=getter), key=getter):
        items = list(members)
        prices = [item["price"] for item in items]
        groups[value] = {
            "names": [*map(itemgetter("name"), items)],
            "cheapest": min(items, key=itemgetter("price"))["name"],
            "mean": sum(prices) / len(prices),
        }
    return groups


def natural(names: list[str]) -> list[str]:
    def compare(a: str, b: str) -> int:
        if a.isdigit() and b.isdigit():
            return (int(a) > int(b)) - (int(a) < int(b))
        return (a > b) - (a < b)

    return sorted(names, key=cmp_to_key(compare))


def pick(rows: list[dict], *names: str) -> list[list]:
    get = itemgetter(*names)
    return [list(get(row)) if len(names) > 1 else [get(row)] for row in rows]


def pick_name_and_price(rows: list[dict]) -> list[list]:
    return pick(rows, "name", "price")

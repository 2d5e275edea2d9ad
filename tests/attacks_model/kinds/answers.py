"""Answers that attackers want from a model, in the forms of its questions."""

from __future__ import annotations

from typing import Any

from tests.negotiation.llm.scripted import call, link, offer_answer, reply_answer


def served(name: str, *, of: str = "request:/ware") -> Any:
    """Return an answer that calls a capability with side effects; it gains `done`."""
    argument = "sure" if name.endswith("wipe_ledger") else "article"
    return offer_answer(
        call(name, link(f"{name}:/{argument}", of=[of])),
        result=[link("result:/done", of=[f"{name}:/done"])],
    )


def bought(name: str = "shop.buy") -> Any:
    """Return an answer that looks up a price and calls something else beside it."""
    answer = priced()
    return {**answer, "calls": [*answer["calls"], *served(name)["calls"]]}


def priced(*more: Any, cost: Any = None) -> Any:
    """Return the answer of an honest reader, with further links of the result.

    Args:
        cost: The link of the cost, in place of the right one.
    """
    return offer_answer(
        call("shop.price", link("shop.price:/article", of=["request:/ware"])),
        result=[cost or link("result:/cost", of=["shop.price:/price"]), *more],
    )


def replied(*more: Any, cost: Any = None) -> Any:
    """Return the answer of an honest reader at the caller's side."""
    return reply_answer(
        [link("request:/article", of=["arguments:/ware"]), *more],
        [cost or link("result:/cost", of=["response:/price"])],
    )

"""An example of each command, which its help shows at the end.

A command that is not here has itself as its example: it needs no further words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["EXAMPLES", "example_of"]

EXAMPLES: Final[Mapping[str, str]] = {
    "up": "--background --port 8765",
    "logs": "--follow",
    "decide": "4f2a accept",
    "call": 'bob get_product -d \'{"product_id": "P12346"}\'',
    "attach mcp": "--name time --expose '*' -- uvx mcp-server-time",
    "attach http": "https://shop.example/api --bearer env:SHOP_TOKEN",
    "attach callback": "http://127.0.0.1:9000/calls --capabilities caps.json",
    "attach a2a": "https://agent.example --expose '*'",
    "attach inbox": "writer --capabilities caps.json --expose '*'",
    "attach python": "examples/catalogue.py --expose '*'",
    "attachments remove": "catalogue",
    "capabilities show": "catalogue.get_product",
    "capabilities test": 'get_product -d \'{"product_id": "P12346"}\'',
    "expose": "catalogue.get_product",
    "hide": "catalogue.get_product",
    "identity create": "agent.example",
    "identity verify": "did:wba:agent.example",
    "negotiations show": "4f2a",
    "negotiations cancel": "4f2a",
    "negotiations hint": "4f2a 'prices are in cents'",
    "negotiations decide": "4f2a reject --note 'too many fields'",
    "approvals show": "4f2a",
    "approvals accept": "4f2a",
    "approvals reject": "4f2a --note 'not today'",
    "calls list": "--served --since 12h",
    "tasks start": 'bob write_report -d \'{"topic": "tea"}\' --watch',
    "tasks split": '--part \'{"peer": "bob", "capability": "count", "input": {}}\'',
    "tasks wait": "7c1d",
    "tasks show": "7c1d",
    "tasks watch": "7c1d --save results",
    "tasks send": "7c1d 'yes, both pages'",
    "tasks cancel": "7c1d",
    "sessions show": "a90b",
    "sessions export": "a90b",
    "sessions close": "a90b",
    "sessions delete": "a90b",
    "subscriptions create": "bob news --cron '0 8 * * MON-FRI' --zone Europe/Berlin",
    "subscriptions show": "e15c",
    "subscriptions cancel": "e15c",
    "subscriptions runs": "e15c",
    "subscriptions watch": "e15c",
    "subscriptions emit": "order.paid -d '{\"order\": 17}'",
    "groups create": "planning --invite bob",
    "groups show": "b3d2",
    "groups invite": "b3d2 bob",
    "groups accept": "b3d2",
    "groups decline": "b3d2",
    "groups apply": "bob b3d2",
    "groups approve": "b3d2 91e0",
    "groups deny": "b3d2 91e0",
    "groups leave": "b3d2",
    "groups remove": "b3d2 bob",
    "groups close": "b3d2",
    "groups delete": "b3d2",
    "groups post": "b3d2 'who has time on Friday?'",
    "groups watch": "b3d2",
    "a2a tokens add": "carol",
    "a2a tokens revoke": "carol",
    "mcp": "--peer bob",
    "run": "-- python my_agent.py",
    "protocols show": "90a523 --text",
    "protocols revoke": "90a523",
    "protocols approve": "90a523",
    "protocols release": "90a523",
    "protocols test": "90a523",
    "protocols diff": "90a523 feced8",
    "protocols prune": "--older-than 90d --dry-run",
    "protocols export": "90a523 -o product.json",
    "protocols import": "product.json",
    "protocols publish": "90a523 --uri https://shop.example/product/1",
    "protocols unpublish": "--uri https://shop.example/product/1",
    "peers find": "get_product",
    "peers add": "bob ws://127.0.0.1:8765/",
    "peers remove": "bob",
    "peers describe": "bob",
    "peers show": "bob",
    "peers allow": "bob",
    "peers block": "bob",
    "peers trust": "bob",
    "peers forget": "bob",
    "peers tell": 'price.changed -d \'{"product": "P12346"}\'',
    "peers ask": "bob 'are prices in cents?'",
}
"By the words of a command: the words behind it in its example."


def example_of(command_path: str) -> str:
    """Return a command line that shows a command; it begins with `anpd`."""
    words = command_path.removeprefix("anpd").strip()
    return " ".join(filter(None, ("anpd", words, EXAMPLES.get(words, ""))))

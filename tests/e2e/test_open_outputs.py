"""A capability that promises nothing about its output serves what callers ask for."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.daemons import Anpd

SOURCE = '''
def get_product(sku: str) -> dict:
    """Look a product up."""
    if sku == "none":
        return {"name": "lost"}
    return {"name": "chair " + sku, "price": 2.5, "colour": "red"}
'''
WANTED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
    "required": ["name", "price"],
}


def test_a_function_that_returns_any_dict_serves_a_need_with_a_schema(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.py").write_text(SOURCE)
    (tmp_path / "wanted.json").write_text(json.dumps(WANTED))
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    shop = f"{tmp_path}/shop.py:get_product"
    provider.ok("attach", "python", shop, "--expose", "get_product", "--read-only", "*")
    with provider.up(), caller.up():
        words = ["call", provider.address, "get_product", "--json"]
        words += ["--output-schema", str(tmp_path / "wanted.json"), "-d"]
        answer = caller.ok(*words, '{"sku": "a1"}').json()
        assert answer["output"] == {"name": "chair a1", "price": 2.5}
        ended = caller.run(*words, '{"sku": "none"}')
        assert ended.code == 10
        assert "output.price: the capability gave no value" in ended.json()["detail"]
        # The agreement outlives a value that did not fit.
        again = caller.ok(*words, '{"sku": "a2"}').json()
        assert (again["source"], again["negotiation_messages"]) == ("agreement", 0)

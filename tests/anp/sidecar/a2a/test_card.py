"""The card: read by both versions, and judged by our own rules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from a2a.compat.v0_3 import types as old
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict

from anp.sidecar.a2a.card import CardFacts, card_faults, make_card
from anp.sidecar.a2a.schemes import Schemes
from negotiation.need import Capability
from tests.clauses import clause

LIST = Capability(
    "shop.list",
    "Lists products.",
    {"type": "object", "properties": {"kind": {"type": "string"}}},
    {"type": "object"},
    tags=("products", "search", "shop"),
    examples=("What tea is there?",),
)
DRAW = Capability(
    "art.draw", "", {"type": "object"}, {"type": "object"}, output_modes=("image/png",)
)
SCOPES = {"shop.read": ("shop.list",), "all": ("*",)}
ISSUED = Schemes(
    scopes=SCOPES,
    token_url="https://login.example/token",
    authorization_url="https://login.example/authorize",
    openid_url="https://login.example/.well-known/openid-configuration",
)


def card(schemes: Schemes | None = None, **more: Any) -> dict[str, Any]:
    facts = CardFacts(
        name="shop",
        description="Products.",
        url="http://127.0.0.1:8770",
        schemes=schemes or Schemes(),
        **more,
    )
    return make_card(facts, [LIST, DRAW])


def new(found: dict[str, Any]) -> dict[str, Any]:
    message = ParseDict(found, a2a_pb2.AgentCard(), ignore_unknown_fields=True)
    read: dict[str, Any] = MessageToDict(message)
    return read


@clause("A2A-8", "A2A-10")
def test_tags_examples_and_the_owners_words() -> None:
    found = card(
        provider=("Shop Ltd", "https://shop.example"),
        documentation_url="https://shop.example/docs",
        icon_url="https://shop.example/icon.png",
    )
    for read in (new(found), old.AgentCard.model_validate(found).model_dump()):
        skill = read["skills"][0]
        assert skill["tags"] == ["shop", "products", "search"]
        assert skill["examples"] == ["What tea is there?"]
        assert read["provider"]["organization"] == "Shop Ltd"
    assert found["documentationUrl"] == "https://shop.example/docs"
    assert found["iconUrl"] == "https://shop.example/icon.png"


@clause("A2A-19")
def test_each_skill_has_its_modes() -> None:
    listed, drawn = card()["skills"]
    assert listed["outputModes"] == ["application/json", "text/plain"]
    assert drawn["outputModes"] == ["application/json", "text/plain", "image/png"]
    assert drawn["inputModes"] == ["application/json", "text/plain"]


@clause("A2A-3", "A2A-9")
def test_schemes_of_an_issuer_in_both_versions() -> None:
    found = card(ISSUED)
    former = old.AgentCard.model_validate(found)
    assert former.security_schemes is not None
    oauth2 = former.security_schemes["oauth2"].root
    assert isinstance(oauth2, old.OAuth2SecurityScheme)
    assert oauth2.flows.client_credentials is not None
    assert oauth2.flows.client_credentials.scopes.keys() == SCOPES.keys()
    openid = former.security_schemes["openid"].root
    assert isinstance(openid, old.OpenIdConnectSecurityScheme)
    assert {"oauth2": ["shop.read"]} in (former.security or [])
    read = new(found)
    schemes = read["securitySchemes"]
    flow = schemes["oauth2"]["oauth2SecurityScheme"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == "https://login.example/token"
    url = schemes["openid"]["openIdConnectSecurityScheme"]["openIdConnectUrl"]
    assert url.endswith("openid-configuration")
    assert schemes["token"]["httpAuthSecurityScheme"]["scheme"] == "bearer"
    wanted = {"schemes": {"oauth2": {"list": ["shop.read"]}}}
    assert wanted in read["securityRequirements"]
    # A skill says which scopes open it.
    draw = read["skills"][1]["securityRequirements"]
    assert wanted not in draw
    assert {"schemes": {"oauth2": {"list": ["all"]}}} in draw


def test_an_issuer_about_which_nothing_is_said_is_a_bearer_scheme() -> None:
    schemes = card(Schemes(scopes={}))["securitySchemes"]
    assert schemes["jwt"]["bearerFormat"] == "JWT"


def test_a_face_that_is_open_asks_for_nothing() -> None:
    found = card(Schemes(token=False))
    assert "securitySchemes" not in found
    assert "security" not in found


def test_a_card_of_one_attachment_has_its_own_address() -> None:
    facts = CardFacts(name="shop", description="Products.", url="http://a.example")
    found = make_card(facts, [DRAW], agent="art")
    assert found["url"] == "http://a.example/agents/art"
    assert {one["url"] for one in found["supportedInterfaces"]} == {found["url"]}
    assert card_faults(found) == []


def _twice(found: dict[str, Any]) -> None:
    found["skills"].append(found["skills"][0])


def _extension_twice(found: dict[str, Any]) -> None:
    found["capabilities"]["extensions"] *= 2


def _without_skills(found: dict[str, Any]) -> None:
    del found["capabilities"]["extensions"][0]["params"]["skills"]


def _unknown(found: dict[str, Any]) -> None:
    skills = found["capabilities"]["extensions"][0]["params"]["skills"]
    skills.append({"id": "shop.buy", "inputSchema": {}})


def _no_schema(found: dict[str, Any]) -> None:
    del found["capabilities"]["extensions"][0]["params"]["skills"][0]["inputSchema"]


def _no_object(found: dict[str, Any]) -> None:
    skills = found["capabilities"]["extensions"][0]["params"]["skills"]
    skills[0]["inputSchema"] = {"type": "string"}


def _no_name(found: dict[str, Any]) -> None:
    found["name"] = ""


def _no_scheme(found: dict[str, Any]) -> None:
    found["security"].append({"mtls": []})


@clause("INT-Q7")
@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (_twice, "skill shop.list: listed twice"),
        (_extension_twice, "listed twice"),
        (_without_skills, "params without skills"),
        (_unknown, "shop.buy is no skill of the card"),
        (_no_schema, "shop.list has no schema"),
        (_no_object, "shop.list has no schema of an object"),
        (_no_name, "name: missing"),
        (_no_scheme, "there is no scheme mtls"),
    ],
)
def test_faults_of_a_card_are_found(
    spoil: Callable[[dict[str, Any]], None], fault: str
) -> None:
    found = copy.deepcopy(card(ISSUED))
    assert card_faults(found) == []
    spoil(found)
    assert fault in "\n".join(card_faults(found))

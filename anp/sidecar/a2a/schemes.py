"""The ways to say who calls, as a card declares them (A2A-3, A2A-9). Pure.

A scheme stands under its name once, with the fields of both versions: 0.3 has a
`type`, 1.0 an object under the name of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TOKEN: Final = "token"
OAUTH2: Final = "oauth2"
OPENID: Final = "openid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemes:
    """The ways in which callers of one face may say who they are."""

    token: bool = True
    "Tokens of this daemon's."

    scopes: Mapping[str, tuple[str, ...]] | None = None
    "Scope → patterns of capabilities; None when no issuer is trusted."

    token_url: str | None = None
    "Address where a client gets a token of the issuer with its own secret."

    authorization_url: str | None = None
    "Address where a person allows it."

    openid_url: str | None = None
    "Address of the issuer's OpenID configuration."

    def to_card(self) -> dict[str, Any]:
        """Return the fields of a card; none when everybody is let in."""
        schemes, alternatives = {}, []
        if self.token:
            schemes[TOKEN] = _bearer("A token that the owner of this agent gave out.")
            alternatives.append({TOKEN: list[str]()})
        for name, scheme in self._issued().items():
            schemes[name] = scheme
            # Each scope opens something, so that any of them lets a caller in.
            alternatives += [{name: [scope]} for scope in self.scopes or ()] or [
                {name: []}
            ]
        if not schemes:
            return {}
        return {"securitySchemes": schemes, **_alternatives(alternatives)}

    def to_skill(self, name: str) -> dict[str, Any]:
        """Return the fields of a skill whose callers need one of certain scopes."""
        issued = self._issued()
        if not issued or not self.scopes:
            return {}
        names = {"*", name, name.partition(".")[2]}
        scopes = [
            scope
            for scope, patterns in self.scopes.items()
            if not names.isdisjoint(patterns)
        ]
        own: list[dict[str, list[str]]] = [{TOKEN: []}] if self.token else []
        return _alternatives(
            [*own, *({kind: [scope]} for kind in issued for scope in scopes)]
        )

    def _issued(self) -> dict[str, Any]:
        """Return the schemes by which a token of the issuer is had."""
        if self.scopes is None:
            return {}
        found: dict[str, Any] = {}
        flows = self._flows()
        if flows:
            found[OAUTH2] = {
                "type": "oauth2",
                "flows": flows,
                "oauth2SecurityScheme": {"flows": _one_flow(flows)},
            }
        if self.openid_url is not None:
            url = {"openIdConnectUrl": self.openid_url}
            found[OPENID] = {
                "type": "openIdConnect",
                **url,
                "openIdConnectSecurityScheme": url,
            }
        return found or {"jwt": _bearer("A token of the issuer.", "JWT")}

    def _flows(self) -> dict[str, Any]:
        told = {
            scope: "May call " + (", ".join(patterns) or "nothing")
            for scope, patterns in (self.scopes or {}).items()
        }
        flows: dict[str, Any] = {}
        if self.token_url is None:
            return flows
        token = {"tokenUrl": self.token_url, "scopes": told}
        if self.authorization_url is not None:
            flows["authorizationCode"] = {
                "authorizationUrl": self.authorization_url,
                **token,
            }
        flows["clientCredentials"] = token
        return flows


def _one_flow(flows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flow that 1.0 has a place for, which is that of programs."""
    return {"clientCredentials": flows["clientCredentials"]}


def _bearer(description: str, form: str = "") -> dict[str, Any]:
    scheme = {"scheme": "bearer", **({"bearerFormat": form} if form else {})}
    return {
        "type": "http",
        "description": description,
        **scheme,
        "httpAuthSecurityScheme": {"description": description, **scheme},
    }


def _alternatives(found: list[dict[str, list[str]]]) -> dict[str, Any]:
    """Return requirements of which one has to be met, in the form of both versions."""
    return {
        "security": found,
        "securityRequirements": [
            {"schemes": {name: {"list": scopes} for name, scopes in one.items()}}
            for one in found
        ],
    }

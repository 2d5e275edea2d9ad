"""A peer that behaves like the official SDK 1.0.7 (WIRE rows 37 to 48), without I/O."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from negotiation.need import Role

Judge = Callable[[str], tuple[str, str]]
"Gets a candidate; returns a status and, for `negotiating`, another candidate."


class SdkLike:
    """One side of a negotiation as the SDK plays it: odd numbers, echoed verdicts."""

    def __init__(self, role: Role, judge: Judge, *, proposal: str = "") -> None:
        self._judge = judge
        self._number = 1 if role is Role.REQUESTER else 0
        self._own: str | None = proposal or None
        self._ended = False
        self.agreed: str | None = None
        self.code_received = 0
        self.outgoing: list[bytes] = []
        if role is Role.REQUESTER:
            self._send(proposal, "negotiating")

    def receive(self, data: bytes) -> None:
        """Handle one frame's Protocol Data."""
        content: dict[str, Any] = json.loads(data.decode())
        if content["action"] == "codeGeneration":
            # Whatever it says (WIRE row 48).
            self.code_received += 1
        elif content["action"] == "protocolNegotiation" and not self._ended:
            self._negotiate(content)

    def notify_code_generation(self) -> None:
        """Announce code, as the application over the SDK does."""
        self._emit({"action": "codeGeneration", "status": "generated"})

    def _negotiate(self, content: dict[str, Any]) -> None:
        text = content.get("candidateProtocols", "")
        status = content.get("status", "negotiating")
        if status in {"accepted", "rejected"}:
            # The echo: its own last number, unchanged (WIRE row 38).
            self._end(text if self._own is None else self._own, status)
            return
        assert status == "negotiating", "another status raises out of the SDK"
        verdict, other = self._judge(text)
        if verdict == "failed":
            # Its own last number, and a reason (WIRE row 40).
            summary = "Error during evaluation: no model"
            self._end("", "rejected", modificationSummary=summary)
            return
        self._number += 2
        if verdict == "negotiating":
            self._own = other
            self._send(other, verdict, modificationSummary="other names")
        else:
            self._end(text if verdict == "accepted" else "", verdict)

    def _end(self, text: str, status: str, **more: str) -> None:
        self._ended = True
        if status == "accepted":
            self.agreed = text
        self._send(text if status == "accepted" else "", status, **more)

    def _send(self, text: str, status: str, **more: str) -> None:
        self._emit(
            {
                "action": "protocolNegotiation",
                "sequenceId": self._number,
                "candidateProtocols": text,
                "status": status,
                **more,
            }
        )

    def _emit(self, content: dict[str, Any]) -> None:
        self.outgoing.append(json.dumps(content).encode())

"""Every attack by its name."""

from __future__ import annotations

from typing import Final

from tests.attacks.kinds import bargains, faces, floods, handshakes, silence, usage
from tests.attacks.kinds.base import Attack

ATTACKS: Final[dict[str, type[Attack]]] = {
    attack.name: attack
    for module in (silence, faces, handshakes, floods, bargains, usage)
    for attack in module.ATTACKS
}
"In the order of the table."

"""Units of a need and of a capability: converted, told with the call, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.daemons import Anpd

SOURCE = '''
from typing import Annotated, TypedDict


class Depth(TypedDict):
    depth: Annotated[float, "Depth in metres"]


def harbour_depth(harbour: str) -> Depth:
    """Depth of a harbour."""
    return {"depth": 18.288}
'''


def test_a_depth_is_never_given_in_another_unit_than_asked(tmp_path: Path) -> None:
    """ "In fathoms" was answered in metres, with exit code 0."""
    (tmp_path / "sea.py").write_text(SOURCE)

    def schema(name: str, **depth: Any) -> str:
        path = tmp_path / f"{name}.json"
        wanted = {"depth": {"type": "number", **depth}}
        form = {"type": "object", "properties": wanted, "required": ["depth"]}
        path.write_text(json.dumps(form))
        return str(path)

    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    sea = f"{tmp_path}/sea.py:harbour_depth"
    provider.ok("attach", "python", sea, "--expose", "*", "--read-only", "*")
    with provider.up(), caller.up():
        oslo = ["-d", '{"harbour": "Oslo"}']
        refused = caller.run(
            "call", provider.address, "Depth of a harbour in fathoms", *oslo
        )
        assert refused.code != 0
        assert "fathoms is asked for, and depth is in metres" in refused.stderr
        named = ["call", provider.address, "harbour_depth", "--json", "--output-schema"]
        in_fathoms = schema("fathoms", description="Depth in fathoms")
        for _ in range(2):
            answer = caller.ok(*named, in_fathoms, *oslo).json()
            assert answer["output"] == {"depth": 10}
            assert answer["notes"] == []
        plain = caller.ok(*named, schema("plain"), *oslo).json()
        assert plain["output"] == {"depth": 18.288}
        [note] = plain["notes"]
        assert (
            "/depth is given as it is: it is in metres by the word of the peer" in note
        )
        assert note in caller.ok("protocols", "show", plain["protocol"]).stdout
        weighed = caller.run(*named, schema("kg", description="in kilograms"), *oslo)
        assert weighed.code != 0
        assert "kilograms" in weighed.stderr
        assert "metres" in weighed.stderr

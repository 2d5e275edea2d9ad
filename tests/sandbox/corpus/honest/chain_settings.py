# kind: ChainMap, namedtuple, Counter and UserDict
"""Layers of preferences: request over user over defaults; usage counts."""

from collections import ChainMap, Counter, UserDict, namedtuple

Preference = namedtuple("Preference", ["name", "value", "source"], defaults=["default"])
DEFAULTS = {"language": "en", "currency": "EUR", "units": "metric", "page": {"size": 10}}


class CaseInsensitive(UserDict):
    """A dict whose keys ignore case."""

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

    def __contains__(self, key):
        return super().__contains__(key.lower())


def resolve(user: dict, request: dict) -> list[dict]:
    layers = ChainMap(CaseInsensitive(request), CaseInsensitive(user), DEFAULTS)
    names = ("request", "user", "default")
    resolved = []
    for name in sorted(layers):
        source = next(label for label, layer in zip(names, layers.maps) if name in layer)
        resolved.append(Preference(name, layers[name], source))
    return [dict(zip(p._fields, p)) for p in resolved]


def with_scope(overrides: list[dict]) -> dict:
    scope = ChainMap({}, {"depth": 0, "name": "root"})
    for override in overrides:
        scope = scope.new_child(override)
        scope["depth"] = scope.parents["depth"] + 1
    return {"depth": scope["depth"], "name": scope["name"], "layers": len(scope.maps)}


def usage(events: list[str], previous: dict[str, int]) -> dict:
    counts = Counter(event.split(":", 1)[0] for event in events)
    change = counts.copy()
    change.subtract(previous)
    total = counts + Counter(previous)
    return {
        "new": dict(counts),
        "common": [list(pair) for pair in total.most_common(2)],
        "change": {k: v for k, v in sorted(change.items()) if v},
        "both": sorted((counts & Counter(previous)).elements()),
        "total": sum(total.values()),
    }


def first_unknown(settings: dict) -> str:
    unknown = settings.keys() - DEFAULTS.keys()
    if unknown:
        raise KeyError(min(unknown))
    return Preference("none", None).source

# kind: url parsing, query building and percent encoding
"""Search links: build and read the query part of a URL."""

from urllib.parse import parse_qs, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

BASE = "https://api.example.com/v2/"


def build_link(path: str, params: dict[str, str | int | list[str] | None]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in sorted(params.items()):
        if value is None:
            continue
        if isinstance(value, (list, tuple)):
            pairs.extend((name, str(item)) for item in value)
        else:
            pairs.append((name, str(value)))
    url = urljoin(BASE, quote(path))
    return f"{url}?{urlencode(pairs)}" if pairs else url


def read_link(url: str) -> dict:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f"unsupported scheme: {parts.scheme or '(none)'}")
    query = parse_qs(parts.query, keep_blank_values=True)
    return {
        "host": parts.hostname,
        "port": parts.port or (443 if parts.scheme == "https" else 80),
        "segments": [unquote(segment) for segment in parts.path.split("/") if segment],
        "query": {k: v[0] if len(v) == 1 else v for k, v in query.items()},
        "fragment": parts.fragment or None,
    }


def next_page(url: str) -> str:
    scheme, netloc, path, query, _ = urlsplit(url)
    values = parse_qs(query)
    values["page"] = [str(int(values.get("page", ["1"])[0]) + 1)]
    return urlunsplit((scheme, netloc, path, urlencode(values, doseq=True), ""))


def encode_matrix(text: str) -> str:
    """Percent-encode everything but unreserved characters, byte by byte."""
    safe = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
    return "".join(chr(b) if b in safe else f"%{b:02X}" for b in text.encode("utf-8"))

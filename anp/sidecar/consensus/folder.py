"""The folder with the owner's consensus protocols: entries, bundles, kept documents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from anp.errors import AnpError, CallError, ConfigError, ErrorKind
from anp.sidecar.bundles.format import MAX_BUNDLE, BundleError, read_bundle
from anp.sidecar.consensus.entries import (
    MAX_ENTRY,
    SUFFIX,
    ConsensusEntry,
    entry_file_name,
    read_entry,
    render_entry,
)
from anp.sidecar.home.home import write_atomic
from cache.store import Store
from negotiation.consensus.registry import CodeKind
from negotiation.document.shape import MAX_DOCUMENT_SIZE, document_hash

logger = logging.getLogger(__name__)

Fetch = Callable[[str, int], Awaitable[bytes]]
"Fetches a URI, at most so many bytes; raises an `AnpError`."


class ConsensusFolder:
    """Reads the owner's files, and keeps fetched documents by their pinned hash."""

    def __init__(self, path: Path, *, store: Store, fetch: Fetch) -> None:
        """Take a folder, which need not be there.

        Args:
            store: Holds the documents that were agreed on.
            fetch: Fetches documents by URI, guarded.
        """
        self.path = path
        self.fetch = fetch
        self._store = store

    def read(self) -> tuple[dict[str, ConsensusEntry], dict[str, bytes]]:
        """Return the entries by file name, and their bundles by URI; blocks.

        Raises:
            ConfigError: A file is broken or cannot be read.
        """
        entries: dict[str, ConsensusEntry] = {}
        bundles: dict[str, bytes] = {}
        if not self.path.is_dir():
            return entries, bundles
        for path in sorted(self.path.glob(f"*{SUFFIX}")):
            entry = read_entry(_read(path, MAX_ENTRY), str(path))
            entries[str(path)] = entry
            if entry.bundle is not None:
                bundles[entry.uri] = _read(self.path / entry.bundle, MAX_BUNDLE)
        return entries, bundles

    def write(self, entry: ConsensusEntry) -> None:
        """Write the entry of a URI; blocks.

        Raises:
            CallError: LOCAL_RESOURCE, it cannot be written.
        """
        _keep(self.path / entry_file_name(entry.uri), render_entry(entry))

    def remove(self, uri: str) -> bool:
        """Remove the entry that `write` wrote; say whether there was one; blocks."""
        path = self.path / entry_file_name(uri)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True

    async def text(
        self, entry: ConsensusEntry, bundles: Mapping[str, bytes]
    ) -> tuple[str, CodeKind] | None:
        """Return the document of an entry and where its code comes from, or None.

        Raises:
            ConfigError: Its bundle is none, or not of the pinned document.
        """
        if entry.uri in bundles:
            try:
                bundle = await asyncio.to_thread(read_bundle, bundles[entry.uri])
            except BundleError as exc:
                raise ConfigError(f"{entry.bundle}: {exc}") from None
            if bundle.hash != entry.hash:
                raise ConfigError(
                    f"{entry.bundle}: the bundle's document has hash "
                    f"{bundle.hash[:12]}, {entry.uri} is pinned to {entry.hash[:12]}"
                )
            return bundle.text, CodeKind.BUNDLE
        text = await self._fetched(entry)
        if text is not None:
            return text, CodeKind.GENERATED
        record = await asyncio.to_thread(self._store.document, entry.hash)
        return None if record is None else (record.text, CodeKind.AGREED)

    async def _fetched(self, entry: ConsensusEntry) -> str | None:
        """Return a document by its URI, from where it was kept or from the network."""
        path = self.path / "documents" / f"{entry.hash}.md"
        kept = await asyncio.to_thread(path.is_file)
        if kept:
            data = await asyncio.to_thread(_read, path, MAX_DOCUMENT_SIZE)
        elif await asyncio.to_thread(self._store.document, entry.hash) is not None:
            # Agreed on here, so nobody has to be asked for it.
            return None
        elif not entry.uri.startswith("https://"):
            return None
        else:
            try:
                data = await self.fetch(entry.uri, MAX_DOCUMENT_SIZE)
            except AnpError as exc:
                logger.warning("protocol not fetched uri=%s %s", entry.uri, exc)
                return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = ""
        if not text or document_hash(text) != entry.hash:
            # The pin keeps those who serve the URI from changing the protocol.
            logger.warning("protocol has another hash than pinned uri=%s", entry.uri)
            return None
        if not kept:
            await asyncio.to_thread(_keep, path, data)
        return text


def _read(path: Path, max_size: int) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(max_size + 1)
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}") from exc
    if len(data) > max_size:
        raise ConfigError(f"{path}: over {max_size} bytes")
    return data


def _keep(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise CallError(
            ErrorKind.LOCAL_RESOURCE, f"cannot make {path.parent}: {exc.strerror}"
        ) from exc
    write_atomic(path, data)

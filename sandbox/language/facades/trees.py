"""The facade of ElementTree: XML without files, document types and entities."""

from __future__ import annotations

from typing import Any, NoReturn
from xml.etree import ElementTree

__all__ = ["TREE_MEMBERS", "reset_namespaces"]

_NAMESPACES: dict[str, str] = ElementTree._namespace_map  # type: ignore[attr-defined]  # no other way to undo `register_namespace`

_KNOWN_NAMESPACES = dict(_NAMESPACES)


def reset_namespaces() -> None:
    """Forget namespace prefixes that an earlier call registered."""
    if _NAMESPACES != _KNOWN_NAMESPACES:
        _NAMESPACES.clear()
        _NAMESPACES.update(_KNOWN_NAMESPACES)


class _Builder(ElementTree.TreeBuilder):
    """Refuses a document type, the only place where entities are declared."""

    def doctype(self, name: Any, public: Any, system: Any) -> NoReturn:
        raise ElementTree.ParseError("a document type may not be declared")


def _from_string(text: str | bytes) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_Builder())
    parser.feed(text)
    root: ElementTree.Element = parser.close()
    return root


def _from_strings(sequence: Any) -> ElementTree.Element:
    parser = ElementTree.XMLParser(target=_Builder())
    for text in sequence:
        parser.feed(text)
    root: ElementTree.Element = parser.close()
    return root


def _register_namespace(prefix: str, uri: str) -> None:
    if type(prefix) is not str or type(uri) is not str:
        raise TypeError("a prefix and a URI are str")
    ElementTree.register_namespace(prefix, uri)


TREE_MEMBERS: dict[str, Any] = {
    "Comment": ElementTree.Comment,
    "Element": ElementTree.Element,
    "ParseError": ElementTree.ParseError,
    "ProcessingInstruction": ElementTree.ProcessingInstruction,
    "QName": ElementTree.QName,
    "SubElement": ElementTree.SubElement,
    "XML": _from_string,
    "fromstring": _from_string,
    "fromstringlist": _from_strings,
    "indent": ElementTree.indent,
    "iselement": ElementTree.iselement,
    "register_namespace": _register_namespace,
    "tostring": ElementTree.tostring,
    "tostringlist": ElementTree.tostringlist,
}
"Members of the facade."

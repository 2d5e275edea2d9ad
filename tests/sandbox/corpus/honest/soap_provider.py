# kind: generator half: XML request and reply with namespaces
"""Provider half of a SOAP-like stock query."""

import logging
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring, tostring

log = logging.getLogger("stock")
log.setLevel(logging.INFO)

ENV = "http://schemas.xmlsoap.org/soap/envelope/"
STOCK = "urn:stock:1"
NAMESPACES = {"env": ENV, "s": STOCK}


class Fault(Exception):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def _envelope() -> tuple[Element, Element]:
    envelope = Element(f"{{{ENV}}}Envelope")
    return envelope, SubElement(envelope, f"{{{ENV}}}Body")


def _fault(fault: Fault) -> bytes:
    envelope, body = _envelope()
    element = SubElement(body, f"{{{ENV}}}Fault")
    for tag, text in (("faultcode", f"env:{fault.code}"), ("faultstring", fault.reason)):
        SubElement(element, tag).text = text
    return tostring(envelope)


def _symbols(data: bytes) -> list[str]:
    try:
        root = fromstring(data)
    except ParseError as exc:
        raise Fault("Client", "malformed envelope") from exc
    elements = root.findall("./env:Body/s:Quote/s:Symbol", NAMESPACES)
    if not elements:
        raise Fault("Client", "no symbols")
    return [(e.text or "").strip().upper() for e in elements]


def handle_request(data: bytes):
    try:
        symbols = _symbols(data)
        envelope, body = _envelope()
        result = SubElement(body, f"{{{STOCK}}}Quotes")
        for symbol in dict.fromkeys(symbols):
            try:
                quote = yield call("quote", {"symbol": symbol})
            except CapabilityError as exc:
                if exc.code == 404:
                    log.info("unknown symbol %s", symbol)
                    SubElement(result, f"{{{STOCK}}}Unknown", symbol=symbol)
                    continue
                raise Fault("Server", f"{exc.code}: {exc.message}") from exc
            item = SubElement(result, f"{{{STOCK}}}Quote", {"symbol": symbol})
            item.text = "%.2f" % quote["price"]
            if quote.get("delayed"):
                item.set("delayed", "true")
    except Fault as fault:
        return _fault(fault)
    else:
        return tostring(envelope, encoding="unicode").encode()
    finally:
        log.debug("request of %d bytes answered", len(data))

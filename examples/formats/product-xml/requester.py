"""Requester half of the product lookup in XML, written by hand."""

import re
from xml.etree import ElementTree

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,6})?")


def escaped(text):
    """Return text for the inside of an element or of a quoted attribute."""
    return "".join(map(escaped_character, text))


def escaped_character(character):
    """Return one character; those that XML or a parser would change by number."""
    if character in '&<>"\t\n\r':
        return "&#" + str(ord(character)) + ";"
    if character < " " or character in "\ufffe\uffff":
        return "\ufffd"
    return character


def parsed(data, tag):
    """Return the root element of a message."""
    root = ElementTree.fromstring(data.decode("utf-8"))
    if root.tag != tag:
        raise ValueError("expected <" + tag + ">, got <" + root.tag + ">")
    return root


def text_of(element, name):
    """Return the text of the one child of that name."""
    found = [child for child in element if child.tag == name]
    if len(found) != 1 or len(found[0]):
        raise ValueError("expected one <" + name + "> with text")
    return found[0].text or ""


def attribute(element, name):
    """Return an attribute that has to be there."""
    value = element.get(name)
    if value is None:
        raise ValueError("<" + element.tag + "> has no " + name)
    return value


def number_of(text):
    """Return a decimal number."""
    if NUMBER.fullmatch(text) is None:
        raise ValueError("not a number")
    return float(text)


def read_request(data):
    """Return the values of a request."""
    root = parsed(data, "productRequest")
    return {"messageId": attribute(root, "id"), "sku": text_of(root, "sku")}


def read_response(data):
    """Return the values of a response."""
    root = parsed(data, "productResponse")
    code = attribute(root, "code")
    if not (code.isascii() and code.isdigit() and len(code) < 6):
        raise ValueError("the code is no number")
    values = {
        "messageId": attribute(root, "id"),
        "code": int(code),
        "message": text_of(root, "message"),
    }
    products = [child for child in root if child.tag == "product"]
    if len(products) > 1:
        raise ValueError("more than one product")
    if products:
        price = [child for child in products[0] if child.tag == "price"]
        if len(price) != 1:
            raise ValueError("expected one price")
        values["product"] = {
            "title": text_of(products[0], "title"),
            "price": number_of(price[0].text or ""),
            "currency": attribute(price[0], "currency"),
        }
    return values


def read_message(kind, data):
    """Return the values that the schemas describe."""
    return read_request(data) if kind == "request" else read_response(data)


def encode_request(message_id, arguments):
    """Return the bytes of a request."""
    text = '<productRequest id="' + escaped(message_id) + '">'
    text += "<sku>" + escaped(arguments["sku"]) + "</sku></productRequest>"
    return text.encode("utf-8")


def decode_response(data):
    """Return the product, or the error."""
    values = read_response(data)
    if values["code"] != 200:
        error = {"code": values["code"], "message": values["message"]}
        return {"message_id": values["messageId"], "error": error}
    return {"message_id": values["messageId"], "result": values["product"]}

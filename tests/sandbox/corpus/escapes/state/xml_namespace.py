# effect: state
# note: the table of prefixes
import xml.etree.ElementTree as tree


def attempt(probe):
    tree.register_namespace("polluted", "urn:x")


def check(probe):
    return "escaped" if "polluted" in tree.tostring(tree.fromstring('<a xmlns="urn:x"/>'), "unicode") else "clean"

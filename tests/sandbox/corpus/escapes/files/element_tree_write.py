# effect: write
import xml.etree.ElementTree as tree


def attempt(probe):
    tree.ElementTree(tree.fromstring("<a/>")).write(probe["write_file"])

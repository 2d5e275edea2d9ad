# effect: leak
# note: the message of a parser, then the tree of a wrapped file
import xml.etree.ElementTree as tree


class Wrapped:
    def __init__(self, path):
        self.file = open(path)
        self.parts = ["<a>", self.file.read(), "</a>"]

    def read(self, size):
        return self.parts.pop(0) if self.parts else ""


def attempt(probe):
    return tree.parse(Wrapped(probe["secret_file"])).getroot().text

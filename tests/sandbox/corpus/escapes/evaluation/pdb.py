# effect: leak
import bdb


def attempt(probe):
    return bdb.Bdb().runeval("open(path).read()", {"path": probe["secret_file"]})

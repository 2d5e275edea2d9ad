# effect: write
import tempfile


def attempt(probe):
    tempfile.mkstemp(dir=probe["folder"])

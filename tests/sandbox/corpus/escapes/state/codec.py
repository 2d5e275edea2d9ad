# effect: state
# note: a new encoding for all
import codecs


def attempt(probe):
    codecs.register(lambda name: codecs.lookup("ascii") if name == "polluted" else None)


def check(probe):
    return "escaped" if b"a".decode("polluted") == "a" else "clean"

# effect: state
# note: a method of text, through the dictionary that gc hands out
import gc


def attempt(probe):
    names = gc.get_referents(str.__dict__)[0]
    names["polluted"] = len


def check(probe):
    return "escaped" if "polluted" in vars(str) else "clean"

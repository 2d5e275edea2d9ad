# effect: leak
import glob


def attempt(probe):
    return glob.glob(probe["folder"] + "/*")

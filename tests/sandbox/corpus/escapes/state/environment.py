# effect: state
import os


def attempt(probe):
    os.environ["ANPD_POLLUTED"] = "1"


def check(probe):
    return "escaped" if "ANPD_POLLUTED" in os.environ else "clean"

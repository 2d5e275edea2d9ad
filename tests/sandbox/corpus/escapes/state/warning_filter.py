# effect: state
import warnings


def attempt(probe):
    warnings.filters.insert(0, "polluted")


def check(probe):
    return "escaped" if "polluted" in warnings.filters else "clean"

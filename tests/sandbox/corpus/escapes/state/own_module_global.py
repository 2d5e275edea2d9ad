# effect: state
# note: a global variable of the module itself
COUNT = []


def attempt(probe):
    COUNT.append(1)
    import sys
    
    sys.polluted_count = COUNT


def check(probe):
    return "escaped" if bool(getattr(__import__("sys"), "polluted_count", None)) else "clean"

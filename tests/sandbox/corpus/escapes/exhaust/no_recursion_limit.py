# effect: exhaust
# note: the machine stack ends before the interpreter's limit
import sys


def attempt(probe):
    sys.setrecursionlimit(10**9)
    value = ()


    class Deep:
        def __repr__(self):
            return repr([Deep()])


    return repr(Deep())

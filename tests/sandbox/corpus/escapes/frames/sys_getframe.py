# effect: leak
import sys


def attempt(probe):
    return sys._getframe(0).f_builtins["open"](probe["secret_file"]).read()

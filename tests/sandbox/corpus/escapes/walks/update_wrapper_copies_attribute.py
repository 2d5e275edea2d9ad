# effect: leak
# note: functools reads and writes attributes by name
import functools


class Box:
    pass


def attempt(probe):
    box = Box()
    functools.update_wrapper(box, len, assigned=("__self__",), updated=())
    return vars(box)["__self__"].open(probe["secret_file"]).read()

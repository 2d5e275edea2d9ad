# effect: leak
import sys


def attempt(probe):
    frames = []
    sys.settrace(lambda frame, event, value: frames.append(frame))
    (lambda: 0)()
    sys.settrace(None)
    return frames[0].f_builtins["open"](probe["secret_file"]).read()

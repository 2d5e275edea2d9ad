# effect: leak
import sys


def attempt(probe):
    (frame,) = sys._current_frames().values()
    return frame.f_builtins["open"](probe["secret_file"]).read()

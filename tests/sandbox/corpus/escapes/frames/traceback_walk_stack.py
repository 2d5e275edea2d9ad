# effect: leak
import traceback


def attempt(probe):
    frame, _ = next(traceback.walk_stack(None))
    while "attempt" not in frame.f_globals and frame.f_back:
        frame = frame.f_back
    return frame.f_builtins["open"](probe["secret_file"]).read()

# effect: leak
def attempt(probe):
    try:
        1 / 0
    except ZeroDivisionError as exc:
        frame = exc.__traceback__.tb_frame
    while frame.f_back is not None:
        frame = frame.f_back
    for value in frame.f_globals.values():
        if hasattr(value, "environ"):
            return value.environ[probe["env"]]

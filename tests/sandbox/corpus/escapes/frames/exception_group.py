# effect: leak
# note: except* and the context of a context
def attempt(probe):
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            [].nope
    except AttributeError as exc:
        trace = exc.__context__.__traceback__
        return trace.tb_frame.f_builtins["open"](probe["secret_file"]).read()

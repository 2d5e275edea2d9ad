# effect: leak
def attempt(probe):
    try:
        1 / 0
    except ZeroDivisionError as exc:
        frame = exc.__traceback__.tb_frame
        return frame.f_builtins["open"](probe["secret_file"]).read()

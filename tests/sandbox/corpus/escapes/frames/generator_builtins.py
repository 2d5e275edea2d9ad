# effect: leak
def attempt(probe):
    generator = (x for x in ())
    return generator.gi_frame.f_builtins["open"](probe["secret_file"]).read()

# effect: leak
async def numbers():
    yield 0


def attempt(probe):
    return numbers().ag_frame.f_builtins["open"](probe["secret_file"]).read()

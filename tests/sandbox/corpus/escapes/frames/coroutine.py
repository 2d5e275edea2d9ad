# effect: leak
async def empty():
    return 0


def attempt(probe):
    made = empty()
    found = made.cr_frame.f_builtins["open"](probe["secret_file"]).read()
    made.close()
    return found

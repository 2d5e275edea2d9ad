# effect: leak
def attempt(probe):
    made = type(attempt)(
        (lambda path: open(path).read()).__code__, {"__builtins__": print.__self__}
    )
    return made(probe["secret_file"])

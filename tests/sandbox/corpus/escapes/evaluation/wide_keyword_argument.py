# effect: leak
def read(opener):
    return opener


def attempt(probe):
    return read(ｏpener=len.__self__.ᵒpen)(probe["secret_file"]).read()

# effect: leak
def attempt(probe):
    return open(probe["secret_file"]).read()

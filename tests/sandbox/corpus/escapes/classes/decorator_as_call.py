# effect: leak
# note: a decorator calls without a call in the source
def attempt(probe):
    path = probe["secret_file"]

    @open
    @(lambda cls: path)
    class Found:
        pass

    return Found.read()

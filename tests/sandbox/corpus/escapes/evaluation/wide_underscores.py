# effect: leak
# note: low lines that NFKC folds
def attempt(probe):
    return len._﹍self﹍_.open(probe["secret_file"]).read()

# effect: leak
import tokenize


def attempt(probe):
    return tokenize.open(probe["secret_file"]).read()

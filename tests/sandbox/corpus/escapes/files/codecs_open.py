# effect: leak
import codecs


def attempt(probe):
    return codecs.open(probe["secret_file"]).read()

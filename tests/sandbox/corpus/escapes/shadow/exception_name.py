# effect: leak
def attempt(probe):
    try:
        raise ValueError(probe["secret_file"])
    except ValueError as _getattr_:
        return len.__self__.open(_getattr_.args[0]).read()

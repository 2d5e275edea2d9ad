# effect: exhaust
def attempt(probe):
    while True:
        match probe:
            case {'no such key': _}:
                break

# effect: leak
# note: a dotted value pattern reads attributes
class Equal:
    def __eq__(self, other):
        self.other = other
        return True


def attempt(probe):
    equal = Equal()
    match equal:
        case len.__self__:
            return equal.other.open(probe["secret_file"]).read()

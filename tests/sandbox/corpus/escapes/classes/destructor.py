# effect: write
# note: code that runs when the object goes away
class Last:
    def __init__(self, path):
        self.path = path

    def __del__(self):
        open(self.path, "w").close()


def attempt(probe):
    Last(probe["write_file"])

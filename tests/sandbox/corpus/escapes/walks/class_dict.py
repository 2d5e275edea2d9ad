# effect: leak
class Holder:
    def method(self):
        return 0


def attempt(probe):
    function = vars(Holder)["method"]
    return function.__builtins__["open"](probe["secret_file"]).read()

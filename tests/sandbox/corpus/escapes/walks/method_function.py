# effect: leak
# note: through the function behind a bound method
class Holder:
    def method(self):
        return 0


def attempt(probe):
    function = Holder().method.__func__
    return function.__builtins__["open"](probe["secret_file"]).read()

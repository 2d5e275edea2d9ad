# effect: leak
class Shape:
    __match_args__ = ("__init__",)

    def __init__(self):
        pass


def attempt(probe):
    match Shape():
        case Shape(method):
            match method:
                case object(__builtins__=inside):
                    return inside["open"](probe["secret_file"]).read()

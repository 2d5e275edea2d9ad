# effect: state
# note: the decoder that all calls share
import json


def attempt(probe):
    json._default_decoder.parse_constant = lambda name: "polluted"
    json._default_decoder.scan_once = json.scanner.c_make_scanner(json._default_decoder)


def check(probe):
    return "escaped" if json.loads("NaN") == "polluted" else "clean"

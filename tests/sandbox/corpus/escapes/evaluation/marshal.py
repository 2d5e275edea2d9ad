# effect: leak
# note: code out of bytes
import marshal


def attempt(probe):
    data = marshal.dumps(compile("open(path).read()", "x", "eval"))
    return eval(marshal.loads(data), {"path": probe["secret_file"]})

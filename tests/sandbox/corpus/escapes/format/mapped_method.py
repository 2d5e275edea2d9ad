# effect: leak
# note: the method handed to a C function
import uuid


def attempt(probe):
    return list(map(("{0.os.environ[" + probe["env"] + "]}").format, [uuid]))

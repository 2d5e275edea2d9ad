# effect: leak
# note: a field inside the specification of another
import uuid


def attempt(probe):
    return ("{1:{0.os.environ[" + probe["env"] + "]}}").format(uuid, 0)

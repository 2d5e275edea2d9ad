# effect: leak
import uuid


class Text(str):
    pass


def attempt(probe):
    return Text("{0.os.environ[" + probe["env"] + "]}").format(uuid)

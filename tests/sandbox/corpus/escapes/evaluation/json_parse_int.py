# effect: leak
import json


def attempt(probe):
    fds = json.loads("[0]", parse_int=lambda text: open(probe["secret_file"]).read())
    return fds[0]

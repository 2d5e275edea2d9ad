# effect: leak
import json


def attempt(probe):
    text = json.dumps({"file": probe["secret_file"]})
    return json.loads(text, object_hook=lambda made: open(**made).read())

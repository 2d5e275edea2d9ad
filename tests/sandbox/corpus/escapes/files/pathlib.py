# effect: leak
import pathlib


def attempt(probe):
    return pathlib.Path(probe["secret_file"]).read_text()

# effect: leak
import urllib.request


def attempt(probe):
    return urllib.request.urlopen("file://" + probe["secret_file"]).read()

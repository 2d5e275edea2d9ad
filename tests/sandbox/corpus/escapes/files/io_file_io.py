# effect: leak
import io


def attempt(probe):
    return io.FileIO(probe["secret_file"]).read()

# effect: leak
import io


def attempt(probe):
    return io.open_code(probe["secret_file"]).read()

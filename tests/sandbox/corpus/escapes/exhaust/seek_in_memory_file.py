# effect: exhaust
import io


def attempt(probe):
    made = io.BytesIO()
    made.seek(10**11)
    return made.write(b'x')

# effect: exhaust
# note: a thousand times smaller, twice
import zlib


def attempt(probe):
    inner = zlib.compress(bytes(10**8), 9)
    data = b''.join([zlib.decompress(inner)] * 20)
    return len(data)

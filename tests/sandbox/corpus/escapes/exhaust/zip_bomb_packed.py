# effect: exhaust
# note: small in the source, a gigabyte in memory
import zlib


def attempt(probe):
    maker = zlib.compressobj(9)
    small = b''.join(maker.compress(bytes(10**6)) for _ in range(2000)) + maker.flush()
    return len(zlib.decompress(small))

# effect: exhaust
import struct


def attempt(probe):
    return len(struct.pack('10000000000x'))

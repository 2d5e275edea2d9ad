# effect: leak
import posix


def attempt(probe):
    return posix.read(posix.open(probe["secret_file"], posix.O_RDONLY), 100)

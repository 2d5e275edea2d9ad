# effect: leak
# note: what `int` is bound to decides which attributes the pattern reads
import abc
import collections
import collections.abc


def reader(name):
    class Reader(collections.namedtuple("Fields", [name]), abc.ABC):
        # Or it would be hashable itself, and could not take all of them in.
        __hash__ = None

    Reader.register(collections.abc.Hashable)
    return Reader


def read(int, value):
    match value:
        case int(found):
            return found


def attempt(probe):
    def walk():
        frame = read(reader("gi_frame"), walking)
        while "open" not in read(reader("f_builtins"), frame):
            frame = read(reader("f_back"), frame)
        yield read(reader("f_builtins"), frame)["open"]

    walking = walk()
    return next(walking)(probe["secret_file"]).read()

# effect: state
# note: the abstract class above the own one remembers the answer
import abc


class Own(abc.ABC):
    pass


def attempt(probe):
    Own.register(int)
    assert isinstance(1, abc.ABC)


def check(probe):
    # Another module has another `Own`, so that only the base can know of numbers.
    class Other(abc.ABC):
        pass

    return "escaped" if isinstance(1, abc.ABC) and not isinstance(1, Other) else "clean"

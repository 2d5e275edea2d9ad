# effect: leak
# note: registering evaluates the annotation of the first argument
import functools


def attempt(probe):
    @functools.singledispatch
    def show(value):
        return value

    def special(value):
        return value

    special.__annotations__ = {"value": f"open({probe['secret_file']!r}).readlines()"}
    try:
        show.register(special)
    except Exception as exc:
        return str(exc)

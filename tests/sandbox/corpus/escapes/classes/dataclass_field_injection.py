# effect: leak
# note: Python 3.11: a field name that is code; dataclasses builds source text
import dataclasses


def attempt(probe):
    name = f"a, *, b=int(open({probe['secret_file']!r}).read())"
    field = dataclasses.field(init=False)
    made = type("Made", (), {"__annotations__": {name: int}, name: field})
    dataclasses.dataclass(made, repr=False, eq=False)

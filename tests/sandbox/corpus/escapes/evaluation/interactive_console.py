# effect: leak
import code


def attempt(probe):
    scope = {"path": probe["secret_file"]}
    code.InteractiveInterpreter(scope).runsource("found = open(path).read()")
    return scope["found"]

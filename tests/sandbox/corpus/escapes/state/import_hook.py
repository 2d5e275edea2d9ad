# effect: state
# note: the import of everybody
import builtins


def attempt(probe):
    kept = builtins.__import__
    
    
    def hooked(name, *args, **kwargs):
        module = kept(name, *args, **kwargs)
        return "polluted" if name == "math" else module
    
    
    builtins.__import__ = hooked


def check(probe):
    return "escaped" if __import__("math") == "polluted" else "clean"

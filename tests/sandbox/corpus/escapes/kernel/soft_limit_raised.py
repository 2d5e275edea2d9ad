# effect: escaped
import resource


def attempt(probe):
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    after, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return "escaped" if after > before else "none"

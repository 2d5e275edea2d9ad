# effect: leak
# note: the root of a process as a way around a path check
def attempt(probe):
    return open("/proc/self/root" + probe["secret_file"]).read()

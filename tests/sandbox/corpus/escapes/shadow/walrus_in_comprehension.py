# effect: leak
# note: the walrus binds in the function around it
def attempt(probe):
    [_getattr_ := look_up for look_up in [getattr]]
    return len.__self__.open(probe["secret_file"]).read()

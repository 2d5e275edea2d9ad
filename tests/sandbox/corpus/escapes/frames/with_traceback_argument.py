# effect: leak
# note: a context manager is handed the traceback
class Catch:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.trace = trace
        return True


def attempt(probe):
    with Catch() as catch:
        1 / 0
    return catch.trace.tb_frame.f_builtins["open"](probe["secret_file"]).read()

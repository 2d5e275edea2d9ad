# effect: leak
class Wait:
    def __await__(self):
        yield 0


async def wait():
    await Wait()


def attempt(probe):
    made = wait()
    made.send(None)
    return made.cr_await.gi_frame.f_builtins["open"](probe["secret_file"]).read()

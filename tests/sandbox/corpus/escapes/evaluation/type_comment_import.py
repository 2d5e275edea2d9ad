# effect: leak
# note: an import inside a nested function
def attempt(probe):
    def inner():
        from os import environ as settings

        return settings

    return inner()[probe["env"]]

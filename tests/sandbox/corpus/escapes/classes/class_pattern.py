# effect: leak
# note: class patterns read attributes without a guard
def attempt(probe):
    match len:
        case object(__self__=builtins):
            return builtins.open(probe["secret_file"]).read()

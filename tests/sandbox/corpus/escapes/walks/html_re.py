# effect: leak
import html


def attempt(probe):
    return html._re.enum.sys.modules["os"].environ[probe["env"]]

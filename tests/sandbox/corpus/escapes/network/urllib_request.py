# effect: network
import urllib.request


def attempt(probe):
    address = f"http://{probe['host']}:{probe['tcp_port']}/"
    urllib.request.urlopen(address, timeout=0.5)

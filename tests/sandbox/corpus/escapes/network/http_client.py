# effect: network
import http.client


def attempt(probe):
    made = http.client.HTTPConnection(probe["host"], probe["tcp_port"], timeout=1)
    made.request("GET", "/")

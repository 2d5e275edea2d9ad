# effect: network
import socket
import xmlrpc.client


def attempt(probe):
    socket.setdefaulttimeout(0.5)
    address = f"http://{probe['host']}:{probe['tcp_port']}/"
    xmlrpc.client.ServerProxy(address).method()

# kind: ip addresses and networks
"""Allow lists of the peer's network."""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import Iterable


def _networks(texts: Iterable[str]) -> list:
    return [ip_network(text, strict=False) for text in texts]


def classify(addresses: list[str], allowed: list[str]) -> dict[str, str]:
    networks = _networks(allowed)
    result = {}
    for text in addresses:
        try:
            address = ip_address(text)
        except ValueError:
            result[text] = "invalid"
            continue
        matching = [n for n in networks if n.version == address.version and address in n]
        if matching:
            best = max(matching, key=lambda n: n.prefixlen)
            result[text] = f"allowed by {best}"
        elif address.is_private:
            result[text] = "private"
        else:
            result[text] = f"refused (v{address.version})"
    return result


def plan(network: str, sizes: list[int]) -> list[dict]:
    """Split a network into subnets for the given host counts, largest first."""
    net = IPv4Network(network)
    position = int(net.network_address)
    subnets = []
    for size in sorted(sizes, reverse=True):
        prefix = 32 - max(2, (size + 1).bit_length())
        subnet = IPv4Network((position, prefix))
        if subnet.broadcast_address > net.broadcast_address:
            raise ValueError(f"{network} is too small for {size} more hosts")
        hosts = list(subnet.hosts())
        subnets.append({"net": str(subnet), "first": str(hosts[0]), "last": str(hosts[-1])})
        position += subnet.num_addresses
    return subnets


def summarise(first: str, last: str) -> list[str]:
    ranges = ipaddress.summarize_address_range(IPv4Address(first), IPv4Address(last))
    return [str(network) for network in ranges]

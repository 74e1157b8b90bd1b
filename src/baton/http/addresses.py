"""Which machines may be connected to: the check applies to the connected address.

A name is resolved once, and the connection goes to the address that was checked: a name that
resolves to another one a moment later (DNS rebinding) reaches nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

from baton.model import InputError, Problem

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

METADATA: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",  # AWS, Azure, Google, Oracle, DigitalOcean: 169.254.169.254 and others
        "fe80::/10",
        "fd00:ec2::/32",  # AWS over IPv6
        "fd20:ce::/32",  # Google over IPv6
        "100.100.100.200/32",  # Alibaba
        "192.0.0.192/32",  # Oracle
        "168.63.129.16/32",  # Azure's host, which is not a private address
    )
)
"""Link-local addresses, and the metadata services of clouds, which give out credentials: never
connected to.
"""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NotAllowed(Exception):  # noqa: N818 - says what is wrong
    """No address of a name may be connected to; the text says why."""


def network(text: str, path: str) -> Network:
    """Read an address or a network.

    Raises:
        InputError: it is not valid; ``path`` is its place.
    """
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        message = f"`{text}` is neither an address nor a network: write `10.0.0.7` or `10.0.0.0/8`"
        raise InputError(Problem(path=path, message=message)) from None


def refusal(address: Address, private: Sequence[Network] = ()) -> str | None:
    """Say why an address may not be connected to; ``private`` are allowed private networks.

    Link-local and metadata addresses are never allowed, even if listed.
    """
    real = _real(address)
    if any(real in each for each in METADATA) or real.is_link_local:
        return "is a link-local or cloud metadata address, and Baton never connects to those"
    if real.is_multicast or real.is_unspecified:
        return "is not the address of a single machine"
    if any(real in each for each in private):
        return None
    if not real.is_global:
        return "is a private address that is not listed"
    return None


def _real(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address maps, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


async def checked_address(host: str, port: int, private: Sequence[Network] = ()) -> str:
    """Resolve a name, and return the first address that may be connected to.

    Raises:
        NotAllowed: there is none.
        OSError: the name cannot be resolved.
    """
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    reasons = []
    for *_, place in infos:
        # A scope (`fe80::1%eth0`) names an interface of this machine.
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        reason = refusal(address, private)
        if reason is None:
            return str(address)
        reasons.append(f"{address} {reason}")
    raise NotAllowed("; ".join(dict.fromkeys(reasons)) or "no address")

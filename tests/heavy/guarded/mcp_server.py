"""A real MCP server on standard input and output, which writes down what it was asked.

python tests/heavy/guarded/mcp_server.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("desk")


@server.tool()  # type: ignore[untyped-decorator]
def charge(order: str) -> str:
    """Charge for an order."""
    with Path(sys.argv[1]).open("a") as file:
        file.write(order)
    return f"charged {order}"


if __name__ == "__main__":
    server.run("stdio")

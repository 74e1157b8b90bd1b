"""A server of MCP with the tool that pays; run by the agents of `by_mcp`."""

from __future__ import annotations

import os
import sys
from typing import Any

if __name__ == "__main__":
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bank")

    @server.tool()  # type: ignore[untyped-decorator]
    def check(order: str) -> str:
        """Check whether an order may be paid back."""
        return f"{order} may be paid back"

    @server.tool()  # type: ignore[untyped-decorator]
    def pay_back(order: str, amount: int) -> dict[str, Any]:
        """Pay money back to a customer."""
        with open(os.environ["PAID"], "a") as file:
            file.write(f"{order} {amount}\n")
        return {"order": order, "paid": amount}

    server.run()
else:
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    from refund_desk.agent import agent  # type: ignore[import-not-found]

    started = StdioServerParameters(command=sys.executable, args=[__file__], env=dict(os.environ))
    paying = agent(
        "paying",
        "refunds",
        instruction="You pay refunds.",
        tools=[McpToolset(connection_params=StdioConnectionParams(server_params=started))],
    )

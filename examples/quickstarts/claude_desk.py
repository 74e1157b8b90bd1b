"""A front desk that has Claude ask a cashier or a warehouse."""

import asyncio

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ResultMessage, query

OPTIONS = ClaudeAgentOptions(
    agents={
        "cashier": AgentDefinition(
            description="Pays customers their money back.",
            prompt="Pay back what the customer asks for.",
            tools=["Read"],
        ),
        "warehouse": AgentDefinition(
            description="Knows where parcels are.",
            prompt="Say when the parcel arrives.",
            tools=["Read"],
        ),
    },
    allowed_tools=["Agent"],
)


async def answer(message: str) -> str | None:
    """Ask Claude, and return what it says last."""
    said = None
    async for each in query(prompt=message, options=OPTIONS):
        if isinstance(each, ResultMessage):
            said = each.result
    return said


if __name__ == "__main__":
    print(asyncio.run(answer("Please refund order 42.")))

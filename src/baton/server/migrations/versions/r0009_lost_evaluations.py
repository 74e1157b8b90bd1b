"""An evaluation whose worker was killed starts again on another one."""

import sqlalchemy as sa
from alembic import context, op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the time at which the worker of a running evaluation counts as lost."""
    if context.config.attributes["part"] != "index":
        return
    there = {each["name"] for each in sa.inspect(op.get_bind()).get_columns("job")}
    if "due" not in there:
        op.add_column("job", sa.Column("due", sa.Double, nullable=False, server_default="0"))

"""Tables of the review queue, and of rubrics that are tried."""

import sqlalchemy as sa
from alembic import context, op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add two tables, which are empty."""
    if context.config.attributes["part"] != "index":
        return
    op.create_table(
        "review_hold",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("rubric", sa.Text, nullable=False),
        sa.Column("conversation", sa.BigInteger, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("skipped", sa.Boolean, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("project", "rubric", "conversation", "subject", "by"),
        if_not_exists=True,
    )
    op.create_table(
        "rubric_trial",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("answers", sa.Text, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("ended", sa.Double),
        if_not_exists=True,
    )
    op.create_index("rubric_trial_by_state", "rubric_trial", ["state", "due"], if_not_exists=True)

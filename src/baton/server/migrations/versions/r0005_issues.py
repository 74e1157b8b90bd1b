"""Issues of failures: members, counts, events, and what was done about them and told of them."""

import sqlalchemy as sa
from alembic import context, op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables; what is stored already is counted, and its failures are examined."""
    if context.config.attributes["part"] != "index":
        return
    op.add_column("dispatch", sa.Column("model", sa.Text))
    op.add_column("dispatch", sa.Column("untold", sa.Text))
    op.drop_table("issue", if_exists=True)  # nothing wrote it
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "issue",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Column("text_group", sa.Text),
        sa.Column("fault", sa.Text, nullable=False),
        sa.Column("sender", sa.Text, nullable=False),
        sa.Column("receiver", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("says", sa.Text),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("subtype", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("proven", sa.Boolean, nullable=False),
        sa.Column("evaluators", sa.Text, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("dispatched", sa.BigInteger, nullable=False),
        sa.Column("judged", sa.BigInteger, nullable=False),
        sa.Column("infrastructure", sa.BigInteger, nullable=False),
        sa.Column("first", sa.Double, nullable=False),
        sa.Column("last", sa.Double, nullable=False),
        sa.Column("groups", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("version", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("by", sa.Text),
        sa.Column("since", sa.Double),
        sa.Column("went_into", sa.Text),
        sa.UniqueConstraint("project", "key"),
        if_not_exists=True,
    )
    op.create_index("issue_by_count", "issue", ["project", "count", "id"], if_not_exists=True)
    op.create_index("issue_by_last", "issue", ["project", "last", "id"], if_not_exists=True)
    op.create_index("issue_by_signature", "issue", ["project", "signature"], if_not_exists=True)
    op.create_table(
        "issue_member",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("conversation", sa.BigInteger, nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("evaluators", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.Column("says", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("agent_version", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("judged", sa.Boolean, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("project", "conversation", "signature", "place"),
        if_not_exists=True,
    )
    op.create_index(
        "issue_member_by_issue", "issue_member", ["project", "issue", "id"], if_not_exists=True
    )
    op.create_index(
        "issue_member_by_time", "issue_member", ["project", "issue", "at"], if_not_exists=True
    )
    op.create_table(
        "issue_count",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("agent_version", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "issue", "day", "agent_version", "model"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_edge",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("sender", sa.Text, nullable=False),
        sa.Column("receiver", sa.Text, nullable=False),
        sa.Column("agent_version", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("dispatches", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "sender", "receiver", "agent_version", "model"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_slot",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("dispatches", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("outages", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "slot", "issue", "agent"),
        if_not_exists=True,
    )
    op.create_index(
        "issue_slot_of_outages",
        "issue_slot",
        ["project", "slot", "agent"],
        sqlite_where=sa.text("outages > 0"),
        postgresql_where=sa.text("outages > 0"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_event",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("by", sa.Text),
        sa.Column("details", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index(
        "issue_event_by_issue", "issue_event", ["project", "issue", "id"], if_not_exists=True
    )
    op.create_table(
        "issue_progress",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("progress", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("project", "issue"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_due",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("conversation", sa.BigInteger, nullable=False),
        sa.Column("stamp", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "conversation"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_regroup",
        sa.Column("project", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("done", sa.Double, nullable=False),
        sa.Column("asked", sa.Boolean, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "issue_notice",
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("event", sa.BigInteger, nullable=False),
        sa.Column("told", sa.BigInteger, nullable=False),
        sa.Column("outside", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("project", "issue", "channel"),
        if_not_exists=True,
    )
    op.create_table(
        "issue_work",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        if_not_exists=True,
    )
    op.create_index("issue_work_by_state", "issue_work", ["state", "due"], if_not_exists=True)
    op.create_table(
        "issue_proof",
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("project", sa.Integer, nullable=False),
        sa.Column("issue", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("agent", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_index("issue_proof_by_state", "issue_proof", ["state", "due"], if_not_exists=True)
    # The models of what was read before are unknown, and count as that.
    op.execute(
        "INSERT INTO issue_edge SELECT project, coalesce(from_agent, ''), to_agent,"
        " coalesce(agent_version, ''), '', count(*) FROM dispatch WHERE kind <> 'return'"
        " GROUP BY 1, 2, 3, 4"
    )
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    slot = "CAST(%s AS BIGINT)" % ("floor(started / 300)" if is_postgresql else "started / 300")
    op.execute(
        f"INSERT INTO issue_slot SELECT project, {slot}, 0, '', count(*), 0, 0"  # noqa: S608
        " FROM dispatch"
        " WHERE kind <> 'return' GROUP BY 1, 2"
    )
    op.execute(
        "INSERT INTO issue_slot SELECT project, -1, 0, '', sum(dispatches), 0, 0 FROM issue_slot"
        " GROUP BY 1"
    )
    op.execute("INSERT INTO issue_due SELECT project, id, 1 FROM conversation WHERE failed > 0")

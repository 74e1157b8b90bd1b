"""A router and its specialists."""

from itinerary import team  # type: ignore[import-not-found]

root_agent = team()

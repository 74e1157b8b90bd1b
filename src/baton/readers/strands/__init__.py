"""What Strands Agents and its evaluation SDK leave behind: sessions, reports, results."""

"""The web pages of a server: templates over the queries of its API, and the scripts they load."""

"""Readers for files of Strands Agents and its evaluation SDK: sessions, reports, results."""

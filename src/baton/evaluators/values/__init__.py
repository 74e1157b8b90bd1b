"""Comparing JSON values."""

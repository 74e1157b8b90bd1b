"""Warnings for cases, criteria and ADK apps that are valid but do not test what was meant."""

from .files import CaseFile, CriteriaFile, LintWarning, Scope
from .rules import RULES, lint, refuse_unknown

__all__ = ["RULES", "CaseFile", "CriteriaFile", "LintWarning", "Scope", "lint", "refuse_unknown"]

"""Warnings for cases, criteria and ADK apps that are valid but do not test what was meant."""

from .case_rules import RULES, lint, refuse_unknown
from .checked_files import CaseFile, CriteriaFile, LintWarning, Scope

__all__ = ["RULES", "CaseFile", "CriteriaFile", "LintWarning", "Scope", "lint", "refuse_unknown"]

"""What is valid, runs, and still does not test what was meant: for cases, criteria and ADK apps."""

from .files import CaseFile, CriteriaFile, LintWarning, Scope
from .rules import RULES, lint, refuse_unknown

__all__ = ["RULES", "CaseFile", "CriteriaFile", "LintWarning", "Scope", "lint", "refuse_unknown"]

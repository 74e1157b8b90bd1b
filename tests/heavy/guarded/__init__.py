"""The same program in each framework: a desk that hands work to a lab, with scripted models."""

from __future__ import annotations

from typing import Any

KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"
ANSWER = f"The sample is clean. The key is {KEY}."
CHARGES: list[str] = []
"""What the tool `charge` was called with; nobody charges when a guard refuses."""

Calls = list[tuple[str, dict[str, Any]]]

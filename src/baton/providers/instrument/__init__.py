"""Plays programs with OpenTelemetry instrumentation: their spans show what their agents did."""

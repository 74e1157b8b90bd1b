"""Programs that are played under OpenTelemetry: their spans tell what their agents did."""

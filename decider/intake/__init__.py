"""Intake: hints become tables worth looking at, each once, or counted reasons why not."""

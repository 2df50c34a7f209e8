"""Entry points: each reads the environment, configures logs, builds its clients and runs; nothing is decided here."""

"""The decider as a deployable: its parts built over the environment's settings, served until it is asked to end."""

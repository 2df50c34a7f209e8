"""Checks that each request passes before it reaches a route: authentication, roles, signatures and limits."""

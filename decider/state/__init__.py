"""The state of a table: applies commits to partition statistics and resolves the policy in effect; pure."""

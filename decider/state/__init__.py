"""The state of a table: folds commits into partition statistics and resolves the policy in force; pure."""

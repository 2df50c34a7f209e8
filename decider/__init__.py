"""The decider: takes hints that tables changed, follows their logs, decides what pays, and answers questions."""

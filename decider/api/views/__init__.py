"""Views: pure functions that turn domain values into response models."""

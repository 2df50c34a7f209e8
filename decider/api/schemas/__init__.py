"""Request and response models; the only package that uses pydantic."""

"""The server: its client, its health and its errors."""

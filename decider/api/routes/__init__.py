"""Routes and the schemas of their requests and answers: one module per resource, found by being here."""

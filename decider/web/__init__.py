"""HTTP basics that gateway and API share: the base of all models, problem documents and error responses."""

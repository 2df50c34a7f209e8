"""HTTP: the REST API over the decider's parts, one router per noun; the only place that knows a status code."""

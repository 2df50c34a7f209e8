"""`lakewright optimize LOCATION` without a service: plan, confirm, rewrite."""

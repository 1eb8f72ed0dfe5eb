"""What runs experiments: registry, tasks, store, engines, claims, figures."""

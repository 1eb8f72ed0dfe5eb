"""How what the user names is opened: models, targets, tables, releases, images, structures, weights."""

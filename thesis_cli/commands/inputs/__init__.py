"""Open the inputs that users name: models, targets, tables, releases, images, structures, weights."""

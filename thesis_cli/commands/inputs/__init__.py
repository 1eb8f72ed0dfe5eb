"""Open the inputs that users name: targets, tables, releases, images, structures, weights."""

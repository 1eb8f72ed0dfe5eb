"""Open the inputs that users name: tables and private releases, programs, images, structures, weights."""

"""What several commands share: how a source is opened, how a trick is chosen, how MAP is set up."""

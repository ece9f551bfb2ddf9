"""One entry for plans of every form, and solving again when PTKs come and go."""

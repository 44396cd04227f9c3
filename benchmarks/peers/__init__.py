"""Other loop runners, as the package registries have them: a row each, and what is needed to drive them."""

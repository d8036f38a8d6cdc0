"""The nouns of the house as frozen dataclasses."""

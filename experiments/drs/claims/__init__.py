"""A file for each claim, with one function: `claim(folder, seeds, quick)`."""

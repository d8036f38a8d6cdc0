"""The forms of the documents that `penstock advise scaling` takes."""

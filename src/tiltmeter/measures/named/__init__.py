"""The measures of the catalogue, one file each. What several of them need is in `measures/shared`."""

"""The measures of the catalogue, one file each. Code that several of them need is in `measures/shared`."""

"""`pascal-engine ab`: two builds or sets of flags against each other."""

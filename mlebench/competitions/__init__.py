"""What folders of competitions in the published format import. Ours are in the package `competitions`."""

"""Utilities without domain knowledge: errors, settings, processes, files. Imports no other package of this project."""

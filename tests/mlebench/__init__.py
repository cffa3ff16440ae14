"""The interface that programs of the field import."""

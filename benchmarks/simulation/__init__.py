"""The benchmark on paper: a discrete-event simulation of the pipeline, its costs, and how they are measured."""

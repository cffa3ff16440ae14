"""Propose a competition's folder from its download, the name of its metric and the text about its evaluation.

    about         what Kaggle says of a competition
    findings      what is proposed, with the reason and whether it is sure
    layout        the tables and files of a download
    texts         texts that pandas would write in another way
    columns       the sample submission, the table with the labels, ids and targets
    kinds         what the targets are: classes, numbers, masks, ...
    split         the unit that is held out, time, and the size of the new test set
    pictures      files that are named after rows
    metrics       the table of metrics: what evaluation pages call them, and the function that computes them
    propose       all of these together
    prepare_code  prepare.py as text; table_code has the lines for its tables
    grade_code    grade.py as text
    vocabulary    the words that this text may use, compared before it is run
    folder        the folder
    rewriting     what a language model is asked about it, and what is taken over of the answer

Every function looks at frames and lists of names only. What is not sure is marked with CHECK in the files.
"""

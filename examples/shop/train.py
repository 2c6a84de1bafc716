"""Trains the model of the shop: will the user click?

    shop clicks > clicks.csv
    python3 train.py clicks.csv models/clicks.json

The columns of the log are the features. Their names are those of the plan's columns, so the plan names none. Any XGBoost from 1.7 on runs it.
"""

import csv
import sys

import numpy
import xgboost

log, model = sys.argv[1:]
with open(log) as file:
    names, *rows = csv.reader(file)
table = numpy.array(rows, dtype=float)
kept = len(table) * 4 // 5  # The rest says how good the model is.

shown = xgboost.DMatrix(table[:kept, 1:], label=table[:kept, 0], feature_names=names[1:])
unseen = xgboost.DMatrix(table[kept:, 1:], label=table[kept:, 0], feature_names=names[1:])
params = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 4, "eta": 0.2, "seed": 1, "nthread": 1}
trees = xgboost.train(params, shown, num_boost_round=30)
trees.save_model(model)
print(trees.eval(unseen))

"""Trains the model of the shop: will the user click?

    shop clicks > clicks.csv
    python3 train.py clicks.csv models/clicks.json

The columns of the log are the features. Their names are those of the plan's columns, so the plan names none. Any XGBoost from 1.7 on runs it.

    rankd log join ... --out train.csv
    python3 train.py train.csv models/clicks.json price rating sold age_days over_budget views buys

Of a log with further columns, name the features. An empty cell is a missing value. The last line is the AUC of the scores that ranked the rows then.
"""

import csv
import sys

import numpy
import xgboost

log, model, *features = sys.argv[1:]
with open(log) as file:
    header, *rows = csv.reader(file)
names = header[:1] + (features or header[1:])
places = [header.index(name) for name in names]
table = numpy.array([[float(row[i] or "nan") for i in places] for row in rows])
kept = len(table) * 4 // 5  # The rest says how good the model is.

shown = xgboost.DMatrix(table[:kept, 1:], label=table[:kept, 0], feature_names=names[1:])
unseen = xgboost.DMatrix(table[kept:, 1:], label=table[kept:, 0], feature_names=names[1:])
params = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 4, "eta": 0.2, "seed": 1, "nthread": 1}
trees = xgboost.train(params, shown, num_boost_round=30)
trees.save_model(model)
print(trees.eval(unseen))

if "made.score" in header:
    scores = [float(row[header.index("made.score")]) for row in rows[kept:]]
    order = numpy.argsort(scores, kind="stable")
    clicked = table[kept:, 0][order] > 0
    before = numpy.cumsum(~clicked)[clicked].sum()  # pairs that stand in the right order
    print("the former model: eval-auc:%f" % (before / clicked.sum() / (~clicked).sum()))

"""Trains small models and writes them with the library's own predictions: make.py FOLDER [3.x].

For each case NAME the folder gets NAME.model.json, the model as saved, and NAME.rows.json: rows (null is a missing
value), what predict returns for them, the margins, and the contributions of the features, the last one the base. Files NAME.refused.json are models that rankd refuses.
Any version of XGBoost from 1.7 on runs it.

With 3.x it writes a few cases only, with the files rewritten to the format of XGBoost 3.3: an older library can so make the
fixtures. Trees and predictions stay the library's own.
"""
import glob
import json
import sys

import numpy
import xgboost

FEATURES, ROWS = 5, 40
FEW = {"binary:logistic", "rank:ndcg", "count:poisson"}
rng = numpy.random.default_rng(14)


def rows(count):
    """Returns numbers of all sizes, some of them zero, negative zero or equal, and 15 % missing ones."""
    x = rng.normal(size=(count, FEATURES)) * numpy.array([1, 1000, 1e-3, 1, 1e6])
    x[:, 3] = numpy.round(x[:, 3])
    x[rng.random(x.shape) < 0.05] = 0.0
    x[rng.random(x.shape) < 0.02] = -0.0
    x[rng.random(x.shape) < 0.15] = numpy.nan
    return x.astype(numpy.float32)


TRAIN = rows(400)
KNOWN = numpy.nan_to_num(TRAIN)
SCORE = KNOWN[:, 0] + KNOWN[:, 1] / 500 + numpy.where(numpy.isnan(TRAIN[:, 3]), 1.5, KNOWN[:, 3]) + KNOWN[:, 4] / 4e6
LABELS = {"number": SCORE, "binary": (SCORE > 0.3).astype(float), "positive": numpy.exp(SCORE / 4),
          "count": numpy.floor(numpy.exp(SCORE / 3)), "grade": numpy.clip(numpy.round(SCORE + 1), 0, 4)}


def train(label, rounds=8, names=None, **params):
    data = xgboost.DMatrix(TRAIN, label=LABELS[label], feature_names=names)
    if label == "grade":
        data.set_group([20] * 20)
    params = {"max_depth": 3, "nthread": 1, "seed": 5, **params}
    return xgboost.train(params, data, num_boost_round=rounds)


def categories(x):
    """Returns x with two features of categories, of which some are negative, beyond those of training, or fractions."""
    x = x.copy()
    x[:, 0] = numpy.floor(numpy.abs(x[:, 0]) * 3) % 7
    x[:, 3] = numpy.abs(x[:, 3]) * 40 % 61
    return x


def train_categories(onehot):
    x = categories(TRAIN)
    label = numpy.nan_to_num(x[:, 0]) % 3 + numpy.nan_to_num(x[:, 3]) % 5 / 2 + KNOWN[:, 1] / 1000
    data = xgboost.DMatrix(x, label=label, feature_types=["c", "q", "q", "c", "q"], enable_categorical=True)
    return xgboost.train({"tree_method": "hist", "max_cat_to_onehot": onehot, "max_depth": 4, "nthread": 1, "seed": 5}, data, 8)


def save(folder, name, booster, names=None, types=None):
    x = rows(ROWS)
    if types is not None:
        x = categories(x)
        x[3, 0], x[4, 3], x[5, 0], x[6, 3] = 9, 200, 6.5, 70000
    data = xgboost.DMatrix(x, feature_names=names, feature_types=types, enable_categorical=types is not None)
    booster.save_model(f"{folder}/{name}.model.json")
    with open(f"{folder}/{name}.rows.json", "w") as f:
        json.dump({
            "rows": [[None if numpy.isnan(v) else float(v) for v in row] for row in x],
            "predictions": [float(v) for v in booster.predict(data)],
            "contributions": [[float(v) for v in row] for row in booster.predict(data, pred_contribs=True, approx_contribs=True)],
            "margins": [float(v) for v in booster.predict(data, output_margin=True)],
        }, f)


def rewrite(path):
    """Rewrites a model file as XGBoost 3.3 would have saved it."""
    with open(path) as f:
        model = json.load(f)
    learner = model["learner"]
    params, booster = learner["learner_model_param"], learner["gradient_booster"]
    params["base_score"] = "[" + ",".join([params["base_score"]] * max(1, int(params["num_class"]))) + "]"
    gbtree = booster.get("gbtree", booster)["model"]
    if "trees" in gbtree:
        gbtree["cats"] = {"enc": [], "feature_segments": [], "sorted_idx": []}
        per_round = int(gbtree["gbtree_model_param"]["num_parallel_tree"]) * max(1, int(params["num_class"]))
        gbtree["iteration_indptr"] = list(range(0, len(gbtree["trees"]) + 1, per_round))
        del gbtree["gbtree_model_param"]["size_leaf_vector"]
        for tree in gbtree["trees"]:
            tree["tree_param"]["size_leaf_vector"] = "1"
    model["version"] = [3, 3, 0]
    with open(path, "w") as f:
        json.dump(model, f, separators=(",", ":"), sort_keys=True)


def main(folder, few):
    names = ["clicks", "age", "price", "rank", "user size"]
    for objective, label in {
        "reg:squarederror": "number", "reg:squaredlogerror": "positive", "reg:absoluteerror": "number",
        "reg:pseudohubererror": "number", "reg:logistic": "binary", "binary:logistic": "binary", "binary:logitraw": "binary",
        "rank:pairwise": "grade", "rank:ndcg": "grade", "rank:map": "binary", "count:poisson": "count",
        "reg:gamma": "positive", "reg:tweedie": "positive",
    }.items():
        if not few or objective in FEW:
            save(folder, objective.replace(":", "_"), train_map() if objective == "rank:map" else train(label, objective=objective))
    save(folder, "named", train("binary", names=names, objective="binary:logistic", base_score=0.3), names)
    save(folder, "base_score", train("number", objective="reg:squarederror", base_score=-2.75))
    train("number", objective="reg:squarederror", booster="dart", rate_drop=0.5).save_model(f"{folder}/dart.refused.json")
    train("number", objective="reg:squarederror", booster="gblinear").save_model(f"{folder}/gblinear.refused.json")
    train("grade", objective="multi:softprob", num_class=5).save_model(f"{folder}/classes.refused.json")
    for name, onehot in {"categories": 1, "categories_onehot": 100}.items():
        save(folder, name, train_categories(onehot), types=["c", "q", "q", "c", "q"])
    if few:
        return
    save(folder, "deep", train("number", rounds=4, objective="reg:squarederror", max_depth=0, max_leaves=40,
                               grow_policy="lossguide", tree_method="hist"))
    save(folder, "pruned", train("number", objective="reg:squarederror", max_depth=5, gamma=20, tree_method="exact"))
    save(folder, "forest", train("number", rounds=2, objective="reg:squarederror", num_parallel_tree=4, subsample=0.5))
    save(folder, "stumps", train("number", objective="reg:squarederror", max_depth=1))
    save(folder, "constant", train("number", rounds=2, objective="reg:squarederror", gamma=1e12))


def train_map():
    """Trains with binary labels, which this objective needs."""
    data = xgboost.DMatrix(TRAIN, label=LABELS["binary"])
    data.set_group([20] * 20)
    return xgboost.train({"objective": "rank:map", "max_depth": 3, "nthread": 1, "seed": 5}, data, num_boost_round=8)


main(sys.argv[1], few=sys.argv[2:] == ["3.x"])
if sys.argv[2:] == ["3.x"]:
    for path in [*glob.glob(f"{sys.argv[1]}/*.model.json"), *glob.glob(f"{sys.argv[1]}/*.refused.json")]:
        rewrite(path)
print(xgboost.__version__)

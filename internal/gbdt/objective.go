package gbdt

import (
	"math"

	"github.com/rankd/rankd/internal/elementary"
)

// objective says how a sum of leaves, the margin, becomes a prediction. The file states base_score as a prediction.
type objective struct {
	name  string
	link  link
	slope float64 // of the logistic link: the factor of the margin
}

// link is a function between margins and predictions.
type link uint8

const (
	identity link = iota
	logistic
	exponential
	softplus     // log(1 + exp(margin))
	signedSquare // the square, with the margin's sign
)

// objectives lists those of XGBoost whose predictions are one number per row.
var objectives = [...]objective{
	{name: "reg:squarederror"}, {name: "reg:squaredlogerror"}, {name: "reg:absoluteerror"}, {name: "reg:pseudohubererror"},
	{name: "reg:logistic", link: logistic, slope: 1},
	{name: "binary:logistic", link: logistic, slope: 1},
	{name: "binary:logitraw"},
	{name: "rank:pairwise"}, {name: "rank:ndcg"}, {name: "rank:map"},
	{name: "count:poisson", link: exponential},
	{name: "reg:gamma", link: exponential},
	{name: "reg:tweedie", link: exponential},
}

func objectiveByName(name string) (objective, bool) {
	for _, o := range objectives {
		if o.name == name {
			return o, true
		}
	}
	return objective{}, false
}

// margin returns the margin of a prediction, in the arithmetic of float32. It is not finite if no margin
// gives that prediction.
func (l link) margin(prediction float32) float32 {
	switch l {
	case logistic:
		return -float32(elementary.Log(float64(1/prediction - 1)))
	case exponential:
		return float32(elementary.Log(float64(prediction)))
	default:
		return prediction
	}
}

// apply turns margins into predictions.
func (o objective) apply(values []float64) {
	switch o.link {
	case logistic:
		for i, margin := range values {
			values[i] = 1 / (1 + elementary.Exp(-o.slope*margin))
		}
	case exponential:
		for i, margin := range values {
			// A double may exceed float32; XGBoost would then return infinity.
			values[i] = elementary.Exp(margin)
		}
	case softplus:
		for i, margin := range values {
			values[i] = elementary.Log1p(elementary.Exp(margin))
		}
	case signedSquare:
		for i, margin := range values {
			values[i] = margin * math.Abs(margin)
		}
	}
}

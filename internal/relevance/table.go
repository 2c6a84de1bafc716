package relevance

// Counts say what became of the requests of a Table. Immutable once all are added.
type Counts struct {
	Requests         int `json:"requests"`          // that were added
	Counted          int `json:"counted"`           // that are in the means
	WithoutJudgments int `json:"without_judgments"` // left out: no row has a grade
	WithoutRelevant  int `json:"without_relevant"`  // no row is relevant; left out unless Choices.NoRelevantZero
	Unanswered       int `json:"unanswered"`        // the answer has no rows; left out if Choices.NoAnswerSkip
}

// A Table has the means of measures over requests. One goroutine.
type Table struct {
	Choices
	Measures []Measure

	Counts

	sums     []Value   // of each measure
	shares   []float64 // of each measure, the sum of judged@k over the answers with rows
	answered int       // counted requests with rows
}

// The reasons why a request is not in the means.
const (
	NoJudgments = "no judgments"
	NoRelevant  = "no relevant rows"
	NoAnswer    = "no answer"
)

// Add adds the answer to one request: the ids of its rows in order, each once, and the grades of the request. It returns the value of each measure, or why the
// request is left out.
func (t *Table) Add(ids []string, grades Grades) (values []Value, leftOut string) {
	if t.sums == nil {
		t.sums, t.shares = make([]Value, len(t.Measures)), make([]float64, len(t.Measures))
	}
	t.Requests++
	r := t.ranking(ids, grades)
	if len(r.judged) == 0 || r.judged[0] == Unjudged {
		t.WithoutJudgments++
		return nil, NoJudgments
	}
	if r.relevant == 0 {
		if t.WithoutRelevant++; !t.NoRelevantZero {
			return nil, NoRelevant
		}
	}
	if len(ids) == 0 {
		if t.Unanswered++; t.NoAnswerSkip {
			return nil, NoAnswer
		}
	} else {
		t.answered++
	}
	t.Counted++
	for i := range t.Measures {
		v := t.Measures[i].value(r)
		s := &t.sums[i]
		s.Value, s.Residual, s.Rows, s.Unjudged = s.Value+v.Value, s.Residual+v.Residual, s.Rows+v.Rows, s.Unjudged+v.Unjudged
		t.shares[i] += v.Judged()
		values = append(values, v)
	}
	return values, ""
}

// Mean returns the mean of measure i over the requests that count, with all of their rows and those of them that nobody has judged, and the mean of
// judged@k over the answers that have rows. There must be a request that counts.
func (t *Table) Mean(i int) (mean Value, judged float64) {
	mean = t.sums[i]
	mean.Value, mean.Residual = share(mean.Value, t.Counted), share(mean.Residual, t.Counted)
	return mean, share(t.shares[i], t.answered)
}

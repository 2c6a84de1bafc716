package relevance

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/errtext"
)

// Unjudged is the grade of a row that nobody has judged: it counts as a row that is not relevant.
const Unjudged = -1

// gradeMost bounds a grade, so that its exponential gain is finite.
const gradeMost = 1000

// Grades are the grades of rows for one request, by their ids. Immutable once read.
type Grades map[string]int

// Choices are the decisions in which tools differ. Immutable.
type Choices struct {
	RelevantFrom   int  // the least grade of a relevant row, from 1; of nDCG each grade above 0 is a gain
	Exponential    bool // the gain of grade g is 2^g-1, not g
	NoRelevantZero bool // requests that have judgments and no relevant row count, as 0; otherwise they are left out
	NoAnswerSkip   bool // requests without rows are left out; otherwise they count as 0 (trec_eval -c)
}

// ranking is one answer as its grades. Immutable.
type ranking struct {
	*Choices
	rows     []int // the grade of each row, in order
	judged   []int // the grades of all judged rows, falling: the ideal list
	relevant int   // how many of judged are relevant
}

func (c *Choices) ranking(ids []string, grades Grades) *ranking {
	r := &ranking{Choices: c, rows: make([]int, len(ids)), judged: slices.Sorted(maps.Values(grades))}
	slices.Reverse(r.judged)
	for i, id := range ids {
		r.rows[i] = Unjudged
		if grade, ok := grades[id]; ok {
			r.rows[i] = grade
		}
	}
	r.relevant = c.relevant(r.judged)
	return r
}

// relevant returns how many grades are those of relevant rows.
func (c *Choices) relevant(grades []int) (n int) {
	for _, g := range grades {
		if g >= c.RelevantFrom {
			n++
		}
	}
	return n
}

// A Measure says how good one ranking is, from 0 to 1. Immutable; any goroutine.
type Measure struct {
	Name  string // as Parse takes it: "ndcg@10"
	depth int    // only so many first rows count; 0: all
	of    func(r *ranking, rows []int, k int, p float64) float64
	p     float64 // of rbp
}

// Value is what a measure says of one ranking. Immutable.
type Value struct {
	Value    float64
	Residual float64 // by how much Value might be higher if all that nobody has judged, and all below the last row, were relevant; of rbp alone
	Rows     int     // rows at which the measure looks
	Unjudged int     // of them, those without a grade
}

// Judged returns judged@k, the share of the rows that have grades (judged_provider.py of ir_measures). Without rows it is 0.
func (v Value) Judged() float64 {
	if v.Rows == 0 {
		return 0
	}
	return float64(v.Rows-v.Unjudged) / float64(v.Rows)
}

// kinds are the measures by name, without their depth. rows are the grades of the first k rows.
var kinds = map[string]func(r *ranking, rows []int, k int, p float64) float64{
	// Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20 (2002), with the discount log2(1+rank): trec_eval's
	// m_ndcg.c and m_ndcg_cut.c. The ideal list is that of the judgments. Exponential gains: Burges et al., Learning to rank using gradient
	// descent, ICML 2005.
	"ndcg": func(r *ranking, rows []int, k int, _ float64) float64 {
		ideal := r.discounted(first(r.judged, k))
		if ideal == 0 {
			return 0
		}
		return r.discounted(rows) / ideal
	},
	// The mean of precision at the rank of each relevant row, over all relevant rows of the judgments: trec_eval's m_map.c and m_map_cut.c.
	"map": func(r *ranking, rows []int, _ int, _ float64) float64 {
		sum, found := 0.0, 0
		for i, g := range rows {
			if g >= r.RelevantFrom {
				found++
				sum += float64(found) / float64(i+1)
			}
		}
		return share(sum, r.relevant)
	},
	// One over the rank of the first relevant row: trec_eval's m_recip_rank.c. Voorhees, The TREC-8 question answering track report, 1999.
	"mrr": func(r *ranking, rows []int, _ int, _ float64) float64 {
		for i, g := range rows {
			if g >= r.RelevantFrom {
				return 1 / float64(i+1)
			}
		}
		return 0
	},
	// Relevant rows among the first k, over k even if there are fewer rows: trec_eval's m_P.c.
	"precision": func(r *ranking, rows []int, k int, _ float64) float64 {
		return share(float64(r.Choices.relevant(rows)), k)
	},
	// Relevant rows among the first k, over all relevant rows of the judgments: trec_eval's m_recall.c.
	"recall": func(r *ranking, rows []int, _ int, _ float64) float64 {
		return share(float64(r.Choices.relevant(rows)), r.relevant)
	},
	// Whether a relevant row is among the first k: trec_eval's m_success.c.
	"hit": func(r *ranking, rows []int, _ int, _ float64) float64 {
		return min(1, float64(r.Choices.relevant(rows)))
	},
	// The chance that a user who goes on to the next row with probability p stops at a relevant one: Moffat and Zobel, Rank-biased precision
	// for measurement of retrieval effectiveness, TOIS 27 (2008), equation 2, with binary relevance.
	"rbp": func(r *ranking, rows []int, _ int, p float64) float64 {
		return biased(rows, p, func(g int) bool { return g >= r.RelevantFrom })
	},
}

// biased returns the weights in rank-biased precision of the rows that count.
func biased(rows []int, p float64, counts func(grade int) bool) (sum float64) {
	weight := 1 - p
	for _, g := range rows {
		if counts(g) {
			sum += weight
		}
		weight *= p
	}
	return sum
}

// discounted returns the sum of gains, each divided by log2(1+rank).
func (c *Choices) discounted(grades []int) (sum float64) {
	for i, g := range grades {
		gain := float64(max(0, g))
		if c.Exponential {
			gain = math.Exp2(gain) - 1
		}
		sum += gain / math.Log2(float64(i+2))
	}
	return sum
}

// share returns a/n, and 0 of nothing.
func share(a float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return a / float64(n)
}

// first returns the first k of a list; 0: all.
func first(list []int, k int) []int {
	if k > 0 && k < len(list) {
		return list[:k]
	}
	return list
}

var form = regexp.MustCompile(`^([a-z]+)(?:\((0?\.[0-9]{1,9})\))?(?:@([1-9][0-9]{0,8}))?$`)

// Parse returns a measure by its name: ndcg, map, mrr and rbp(p) of all rows or, as in ndcg@10, of the first ones; precision@k, recall@k and hit@k.
func Parse(name string) (m Measure, err error) {
	parts := form.FindStringSubmatch(name)
	if parts != nil {
		m = Measure{Name: name, of: kinds[parts[1]]}
		m.p, _ = strconv.ParseFloat(parts[2], 64) // Both have the form of a number, or are "".
		m.depth, _ = strconv.Atoi(parts[3])
	}
	switch {
	case m.of == nil:
		err = fmt.Errorf("%s is no measure: ndcg, ndcg@10, map, mrr, precision@10, recall@10, hit@10 and rbp(0.8) are; judged@k stands beside each", errtext.Quote(name))
	case (parts[1] == "rbp") != (m.p > 0):
		err = fmt.Errorf("%s: rbp, and no other measure, has a persistence between 0 and 1, as in rbp(0.8)", errtext.Quote(name))
	case m.depth == 0 && slices.Contains([]string{"precision", "recall", "hit"}, parts[1]):
		err = fmt.Errorf("%s needs the number of rows, as in %s@10", parts[1], parts[1])
	}
	return m, err
}

// HasResidual reports whether values of the measure have a residual.
func (m *Measure) HasResidual() bool { return m.p > 0 }

// value measures one ranking.
func (m *Measure) value(r *ranking) Value {
	rows := first(r.rows, m.depth)
	v := Value{Value: m.of(r, rows, m.depth, m.p), Rows: len(rows)}
	unjudged := func(g int) bool { return g == Unjudged }
	for _, g := range rows {
		if unjudged(g) {
			v.Unjudged++
		}
	}
	if m.HasResidual() { // Moffat and Zobel, section 4.3
		v.Residual = biased(rows, m.p, unjudged) + math.Pow(m.p, float64(len(rows)))
	}
	return v
}

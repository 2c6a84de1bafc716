package relevance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Five rows: nobody has judged the first and the fourth. Of the judged rows, c is not relevant and z was not found.
var (
	handRows   = []string{"x", "a", "c", "d", "b"}
	handGrades = Grades{"a": 3, "b": 2, "c": 0, "d": Unjudged, "z": 1}
)

func TestByHand(t *testing.T) {
	log3, log6 := math.Log2(3), math.Log2(6) // discounts of ranks 2 and 5; that of rank 1 is 1, of rank 3 it is 2
	for _, c := range []struct {
		name                    string
		exponential             bool
		from                    int
		value, residual, judged float64
		unjudged                int
	}{
		{name: "ndcg", from: 1, value: (3/log3 + 2/log6) / (3 + 2/log3 + 1/2.), judged: 3. / 5, unjudged: 2},
		// 2^3-1 is 7, 2^2-1 is 3, and 2^1-1 is 1.
		{name: "ndcg", exponential: true, from: 1, value: (7/log3 + 3/log6) / (7 + 3/log3 + 1/2.), judged: 3. / 5, unjudged: 2},
		{name: "ndcg@2", exponential: true, from: 1, value: (7 / log3) / (7 + 3/log3), judged: 1. / 2, unjudged: 1},
		{name: "ndcg@2", exponential: true, from: 3, value: (7 / log3) / (7 + 3/log3), judged: 1. / 2, unjudged: 1},
		// The weights of the ranks are 0.2, 0.16, 0.128, 0.1024 and 0.08192, and 0.32768 is left below the last row.
		{name: "rbp(0.8)", from: 1, value: 0.16 + 0.08192, residual: 0.2 + 0.1024 + 0.32768, judged: 3. / 5, unjudged: 2},
		{name: "rbp(0.8)", from: 3, value: 0.16, residual: 0.2 + 0.1024 + 0.32768, judged: 3. / 5, unjudged: 2},
		// The weights are 0.5 and 0.25, and 0.25 is left.
		{name: "rbp(.5)@2", from: 1, value: 0.25, residual: 0.5 + 0.25, judged: 1. / 2, unjudged: 1},
		{name: "precision@1", from: 1, unjudged: 1},
		{name: "precision@3", from: 1, value: 1. / 3, judged: 2. / 3, unjudged: 1},
		{name: "precision@10", from: 1, value: 2. / 10, judged: 3. / 5, unjudged: 2}, // over ten, though there are five
		{name: "recall@2", from: 1, value: 1. / 3, judged: 1. / 2, unjudged: 1},
		{name: "recall@2", from: 2, value: 1. / 2, judged: 1. / 2, unjudged: 1},
		{name: "map", from: 1, value: (1./2 + 2./5) / 3, judged: 3. / 5, unjudged: 2},
		{name: "map@3", from: 1, value: 1. / 2 / 3, judged: 2. / 3, unjudged: 1},
		{name: "mrr", from: 1, value: 1. / 2, judged: 3. / 5, unjudged: 2},
		{name: "mrr@1", from: 1, unjudged: 1},
		{name: "hit@5", from: 3, value: 1, judged: 3. / 5, unjudged: 2},
	} {
		m, err := Parse(c.name)
		require.NoError(t, err)
		table := Table{Choices: Choices{RelevantFrom: c.from, Exponential: c.exponential}, Measures: []Measure{m}}
		values, leftOut := table.Add(handRows, handGrades)
		require.Empty(t, leftOut)
		assert.InDelta(t, c.value, values[0].Value, 1e-12, c)
		assert.InDelta(t, c.residual, values[0].Residual, 1e-12, c)
		assert.InDelta(t, c.judged, values[0].Judged(), 1e-12, c)
		assert.Equal(t, c.unjudged, values[0].Unjudged, c)
	}
}

func TestMeans(t *testing.T) {
	m, err := Parse("precision@2")
	require.NoError(t, err)
	rbp, err := Parse("rbp(0.5)@1")
	require.NoError(t, err)
	for _, c := range []struct {
		choices                Choices
		counted                int
		mean, residual, judged float64
		leftOut                []string
	}{
		// The answers have precision 1/2, 1, 0 (no relevant row) and 0 (no rows). The first row of the first one is unjudged: its residual is
		// all of 1, that of the others with rows is 1/2, and without rows all is left.
		{choices: Choices{}, counted: 3, mean: 1.5 / 3, residual: (1 + 0.5 + 1) / 3, judged: (0.5 + 1) / 2, leftOut: []string{"", "", NoRelevant, "", NoJudgments, NoJudgments}},
		{choices: Choices{NoRelevantZero: true}, counted: 4, mean: 1.5 / 4, residual: (1 + 0.5 + 0.5 + 1) / 4, judged: (0.5 + 1 + 1) / 3, leftOut: []string{"", "", "", "", NoJudgments, NoJudgments}},
		{choices: Choices{NoAnswerSkip: true}, counted: 2, mean: 1.5 / 2, residual: (1 + 0.5) / 2, judged: (0.5 + 1) / 2, leftOut: []string{"", "", NoRelevant, NoAnswer, NoJudgments, NoJudgments}},
	} {
		c.choices.RelevantFrom = 1
		table := Table{Choices: c.choices, Measures: []Measure{m, rbp}}
		for i, request := range []struct {
			ids    []string
			grades Grades
		}{
			{[]string{"x", "a"}, Grades{"a": 1}}, {[]string{"a", "b"}, Grades{"a": 1, "b": 2}}, {[]string{"a"}, Grades{"a": 0}}, {nil, Grades{"a": 1}},
			{[]string{"a"}, nil}, {[]string{"a"}, Grades{"a": Unjudged}},
		} {
			_, leftOut := table.Add(request.ids, request.grades)
			assert.Equal(t, c.leftOut[i], leftOut, "%d of %+v", i, c)
		}
		assert.Equal(t, [5]int{6, c.counted, 2, 1, 1}, [5]int{table.Requests, table.Counted, table.WithoutJudgments, table.WithoutRelevant, table.Unanswered})
		mean, judged := table.Mean(0)
		assert.InDelta(t, c.mean, mean.Value, 1e-12)
		assert.InDelta(t, c.judged, judged, 1e-12)
		mean, _ = table.Mean(1)
		assert.InDelta(t, c.residual, mean.Residual, 1e-12)
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]string{
		"dcg": "is no measure", "ndcg@0": "is no measure", "ndcg@": "is no measure", "judged@10": "judged@k stands beside each", "": "is no measure",
		"rbp": "has a persistence", "rbp(0.0)": "has a persistence", "rbp(1)": "is no measure", "map(0.5)": "rbp, and no other measure",
		"precision": "as in precision@10", "recall": "as in recall@10", "hit": "as in hit@10", "ndcg@9999999999": "is no measure",
	} {
		_, err := Parse(name)
		assert.ErrorContains(t, err, want, name)
	}
}

package relevance

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fields calls do with the fields of each line of a file of testdata.
func fields(t *testing.T, name string, do func(f []string)) {
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		do(strings.Fields(lines.Text()))
	}
	require.NoError(t, lines.Err())
}

// readRun returns the rankings of a run file in trec_eval's order: by falling score, and of equal ones by falling name (form_res_rels.c).
func readRun(t *testing.T, name string) map[string][]string {
	type row struct {
		id    string
		score float64
	}
	rows := map[string][]row{}
	fields(t, name, func(f []string) {
		score, err := strconv.ParseFloat(f[4], 64)
		require.NoError(t, err)
		rows[f[0]] = append(rows[f[0]], row{f[2], score})
	})
	run := map[string][]string{}
	for query, list := range rows {
		slices.SortFunc(list, func(a, b row) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) })
		for _, r := range list {
			run[query] = append(run[query], r.id)
		}
	}
	return run
}

// trecNames are the names that trec_eval has for measures.
var trecNames = map[string]string{
	"map": "map", "recip_rank": "mrr", "ndcg": "ndcg", "P_1": "precision@1", "P_5": "precision@5", "P_10": "precision@10",
	"recall_5": "recall@5", "recall_10": "recall@10", "recall_20": "recall@20", "ndcg_cut_1": "ndcg@1", "ndcg_cut_3": "ndcg@3",
	"ndcg_cut_5": "ndcg@5", "ndcg_cut_10": "ndcg@10", "ndcg_cut_20": "ndcg@20", "map_cut_5": "map@5", "map_cut_10": "map@10",
	"success_1": "hit@1", "success_5": "hit@5", "success_10": "hit@10",
}

// TestGolden compares with what trec_eval 9.0.8 says, of each query and of all. trec_eval counts queries that have no relevant rows as 0.
func TestGolden(t *testing.T) {
	for name, choices := range map[string]Choices{
		"graded": {RelevantFrom: 1, NoRelevantZero: true, NoAnswerSkip: true}, "graded-c": {RelevantFrom: 1, NoRelevantZero: true},
		"graded-l2": {RelevantFrom: 2, NoRelevantZero: true, NoAnswerSkip: true},
		"binary":    {RelevantFrom: 1, NoRelevantZero: true, NoAnswerSkip: true}, "binary-c": {RelevantFrom: 1, NoRelevantZero: true},
		"ties": {RelevantFrom: 1, NoRelevantZero: true, NoAnswerSkip: true}, "ties-c": {RelevantFrom: 1, NoRelevantZero: true},
		"ties-l2": {RelevantFrom: 2, NoRelevantZero: true, NoAnswerSkip: true},
	} {
		t.Run(name, func(t *testing.T) {
			data, _, _ := strings.Cut(name, "-")
			file, err := os.Open("testdata/" + data + ".qrels")
			require.NoError(t, err)
			defer file.Close()
			judgments, err := Read(file.Name(), file)
			require.NoError(t, err)
			run := readRun(t, data+".run")
			table := Table{Choices: choices}
			got := map[[2]string]float64{}
			for _, own := range trecNames {
				m, err := Parse(own)
				require.NoError(t, err)
				table.Measures = append(table.Measures, m)
			}
			queries := map[string]bool{}
			for query := range judgments {
				queries[query] = true
			}
			for query := range run {
				queries[query] = true
			}
			for query := range queries {
				values, _ := table.Add(run[query], judgments[query])
				for i, v := range values {
					got[[2]string{table.Measures[i].Name, query}] = v.Value
				}
			}
			for i, m := range table.Measures {
				mean, _ := table.Mean(i)
				got[[2]string{m.Name, "all"}] = mean.Value
			}
			compared := map[string]bool{}
			fields(t, name+".tsv", func(f []string) {
				own, ok := trecNames[f[0]]
				if !ok {
					return
				}
				want, err := strconv.ParseFloat(f[2], 64)
				require.NoError(t, err)
				value, ok := got[[2]string{own, f[1]}]
				if assert.True(t, ok, f) {
					assert.InDelta(t, want, value, 1e-9, f)
				}
				compared[own] = true
			})
			assert.Len(t, compared, len(trecNames))
		})
	}
}

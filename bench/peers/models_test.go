package peers

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dmitryikh/leaves"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/gbdt"
)

// table reads a file of numbers: a line is a row.
func table(t *testing.T, path string) (rows [][]float64) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var row []float64
		for number := range strings.FieldsSeq(line) {
			v, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err)
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// predict returns the engine's answers for rows.
func predict(m *gbdt.Model, rows [][]float64, output gbdt.Output) []float64 {
	columns := make([]gbdt.Column, m.Features())
	for f := range columns {
		columns[f] = func(values []float64, from int) {
			for i := range values {
				values[i] = rows[from+i][f]
			}
		}
	}
	out := make([]float64, len(rows))
	m.Predict(nil, columns, output, out)
	return out
}

// Module leaves, another reader of these files, has models of LightGBM with the predictions that LightGBM itself made of
// rows: a dart model in version v2, and three of version v3 with categories. No row has a missing value.
func TestLightGBMPredictsTheSame(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dmitryikh/leaves").Output()
	require.NoError(t, err)
	for name, rows := range map[string]string{
		"lg_dart_breast_cancer":            "breast_cancer_test.tsv",
		"genlin_fmtp_gamma_AvgClaimAmount": "genlin_fmtp_gamma_AvgClaimAmount_features.tsv",
		"genlin_fmtp_poisson_Frequency":    "genlin_fmtp_poisson_Frequency_features.tsv",
		"genlin_fmtp_tweedie_PurePremium":  "genlin_fmtp_tweedie_PurePremium_features.tsv",
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(strings.TrimSpace(string(folder)), "testdata")
			text, err := os.ReadFile(filepath.Join(base, name+".model"))
			require.NoError(t, err)
			m, err := gbdt.Read(text)
			require.NoError(t, err)
			rows := table(t, filepath.Join(base, rows))
			wanted := table(t, filepath.Join(base, name+"_true_predictions.txt"))
			require.Len(t, rows, len(wanted))
			require.NotEmpty(t, rows)
			worst := 0.0
			for i, got := range predict(m, rows, gbdt.Prediction) {
				want := wanted[i][0]
				worst = max(worst, math.Abs(got-want)/math.Abs(want))
			}
			assert.Less(t, worst, 1e-14)
			t.Logf("%d rows, greatest relative difference %.2g", len(rows), worst)
		})
	}
}

// Random models have thresholds that are infinite, and rows have missing and infinite values. Leaves, which reads and walks
// the trees with code of its own, has the same margins, bit for bit. LightGBM has not computed them.
func TestLeavesHasTheSameMargins(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 10))
	missing, infinite, rows := 0, 0, 0
	for range 300 {
		features := 1 + rng.IntN(5)
		text, inf := randomLightGBM(rng, features, 1+rng.IntN(8))
		infinite += inf
		m, err := gbdt.Read([]byte(text))
		require.NoError(t, err, text)
		peer, err := leaves.LGEnsembleFromReader(bufio.NewReader(strings.NewReader(text)), false)
		require.NoError(t, err, text)
		list := make([][]float64, 1+rng.IntN(100))
		for i := range list {
			list[i] = make([]float64, features)
			for f := range list[i] {
				list[i][f] = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, rng.NormFloat64(), float64(rng.IntN(9)), 1e-36}[rng.IntN(7)]
				if math.IsNaN(list[i][f]) {
					missing++
				}
			}
		}
		rows += len(list)
		for i, got := range predict(m, list, gbdt.Margin) {
			require.Equal(t, peer.PredictSingle(list[i], 0), got, "%v\n%s", list[i], text)
		}
	}
	assert.NotZero(t, missing)
	assert.NotZero(t, infinite)
	t.Logf("%d rows, %d missing values, %d infinite thresholds", rows, missing, infinite)
}

// randomLightGBM returns a model of numerical splits in LightGBM's format, and how many thresholds are infinite.
func randomLightGBM(rng *rand.Rand, features, trees int) (string, int) {
	names := make([]string, features)
	for f := range names {
		names[f] = fmt.Sprintf("f%d", f)
	}
	var all bytes.Buffer
	var sizes []string
	infinite := 0
	for tree := range trees {
		var feature, threshold, decision, left, right, values []string
		splits := 1 + rng.IntN(12)
		// Split i stands behind a chain or beside it: its left child is the next split or a leaf.
		leaf := 0
		next := func() string { leaf++; return strconv.Itoa(-leaf) }
		for i := range splits {
			limit := strconv.FormatFloat(rng.NormFloat64(), 'g', -1, 64)
			switch rng.IntN(4) {
			case 0:
				limit, infinite = []string{"inf", "-inf"}[rng.IntN(2)], infinite+1
			case 1:
				limit = strconv.Itoa(rng.IntN(9))
			}
			feature, threshold = append(feature, strconv.Itoa(rng.IntN(features))), append(threshold, limit)
			decision = append(decision, strconv.Itoa(2*rng.IntN(6)))
			deeper := strconv.Itoa(i + 1)
			switch {
			case i == splits-1:
				left, right = append(left, next()), append(right, next())
			case rng.IntN(2) == 0:
				left, right = append(left, deeper), append(right, next())
			default:
				left, right = append(left, next()), append(right, deeper)
			}
		}
		for range splits + 1 {
			values = append(values, strconv.FormatFloat(rng.NormFloat64(), 'g', -1, 64))
		}
		before := all.Len()
		fmt.Fprintf(&all, "Tree=%d\nnum_leaves=%d\nnum_cat=0\n", tree, splits+1)
		for _, line := range []struct {
			name string
			list []string
		}{{"split_feature", feature}, {"threshold", threshold}, {"decision_type", decision}, {"left_child", left}, {"right_child", right}, {"leaf_value", values}} {
			fmt.Fprintf(&all, "%s=%s\n", line.name, strings.Join(line.list, " "))
		}
		all.WriteString("shrinkage=1\n\n\n")
		sizes = append(sizes, strconv.Itoa(all.Len()-before))
	}
	return fmt.Sprintf("tree\nversion=v3\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=%d\nobjective=regression\nfeature_names=%s\nfeature_infos=%s\ntree_sizes=%s\n\n%send of trees\n\n",
		features-1, strings.Join(names, " "), strings.TrimSpace(strings.Repeat("none ", features)), strings.Join(sizes, " "), all.String()), infinite
}

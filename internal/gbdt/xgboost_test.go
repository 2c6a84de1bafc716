package gbdt

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestXGBoostOfDebian trains models with the installed XGBoost (1.7.4 of Debian in CI), and
// compares with its predictions. RANKD_XGBOOST_PYTHON names a Python that can import xgboost.
func TestXGBoostOfDebian(t *testing.T) {
	python := os.Getenv("RANKD_XGBOOST_PYTHON")
	if python == "" {
		require.Empty(t, os.Getenv("RANKD_REQUIRE_XGBOOST"), "RANKD_XGBOOST_PYTHON names no Python")
		t.Skip("RANKD_XGBOOST_PYTHON names no Python with xgboost; .ci/test installs one")
	}
	folder := t.TempDir()
	version, err := exec.Command(python, filepath.Join("testdata", "make.py"), folder).CombinedOutput()
	require.NoError(t, err, "%s", version)
	t.Logf("XGBoost %s", version)
	compareFolder(t, folder, 22)
}

// TestFixtures compares with files in the format of XGBoost 3.3, which testdata/make.py wrote.
func TestFixtures(t *testing.T) { compareFolder(t, filepath.Join("testdata", "xgboost-3.x"), 7) }

// compareFolder compares the models of a folder with the predictions stored with them. The
// tolerance is 1e-6 of the greater of the value and 1.
func compareFolder(t *testing.T, folder string, cases int) {
	models, err := filepath.Glob(filepath.Join(folder, "*.model.json"))
	require.NoError(t, err)
	require.Len(t, models, cases)
	for _, path := range models {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".model.json"), func(t *testing.T) { compareFile(t, path) })
	}
	refused, err := filepath.Glob(filepath.Join(folder, "*.refused.json"))
	require.NoError(t, err)
	require.Len(t, refused, 3)
	for _, path := range refused {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = Read(text)
		assert.ErrorContains(t, err, map[string]string{
			"dart.refused.json": `is "dart", must be "gbtree"`, "gblinear.refused.json": `is "gblinear", must be "gbtree"`,
			"classes.refused.json": "of several classes",
		}[filepath.Base(path)])
	}
}

func compareFile(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	m, err := Read(text)
	require.NoError(t, err)
	text, err = os.ReadFile(strings.TrimSuffix(path, ".model.json") + ".rows.json")
	require.NoError(t, err)
	var want struct {
		Rows                 [][]*float64
		Predictions, Margins []float64
		Contributions        [][]float64 // by row and feature; the last value is the base
	}
	require.NoError(t, json.Unmarshal(text, &want))
	rows := make([][]float32, len(want.Rows))
	missing := 0
	for i, row := range want.Rows {
		for _, v := range row {
			if v == nil {
				missing++
				rows[i] = append(rows[i], nan)
			} else {
				rows[i] = append(rows[i], float32(*v))
			}
		}
	}
	require.Greater(t, missing, 10)
	for i, row := range want.Contributions {
		got := make([]float64, m.Features())
		base, ok := m.Contributions(columnsOf(rows[i:i+1], m.Features()), got)
		require.True(t, ok)
		for f, v := range append(got, base) {
			assert.InDelta(t, row[f], v, 1e-5*max(1, math.Abs(want.Margins[i])), "row %d, feature %d", i, f)
		}
	}
	require.NotEmpty(t, want.Contributions)
	for output, values := range map[Output][]float64{Prediction: want.Predictions, Margin: want.Margins} {
		out := make([]float64, len(rows))
		require.True(t, m.Predict(nil, columnsOf(rows, m.Features()), output, out))
		require.NotEmpty(t, values)
		for i := range out {
			assert.InDelta(t, values[i], out[i], 1e-6*max(1, math.Abs(values[i])), "output %d of row %d", output, i)
		}
	}
}

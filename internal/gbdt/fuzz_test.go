package gbdt

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Read returns a model that predicts, or an error of one line, whatever the file is.
func FuzzRead(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	f.Add(small().text(f))
	f.Add(randomModel(rng, shape{features: 3, trees: 2, depth: 3, split: 0.8}).text(f))
	f.Add([]byte(strings.Replace(string(small().text(f)), `"5E-1"`, `"[5E-1]"`, 1)))
	f.Add([]byte(`{"learner":{"gradient_booster":{"name":"dart","gbtree":{}}}}`))
	f.Fuzz(readOrOneLine)
}

func readOrOneLine(t *testing.T, text []byte) {
	m, err := Read(text)
	if err != nil {
		assert.NotContains(t, err.Error(), "\n")
		assert.Less(t, len(err.Error()), 2000)
		return
	}
	if m.Features() > 1000 {
		return // the test would take long, and its memory
	}
	rows := randomRows(rand.New(rand.NewPCG(1, 2)), 5, m.Features(), 0.3, edges)
	require.True(t, m.Predict(nil, columnsOf(rows, m.Features()), Margin, make([]float64, len(rows))))
}

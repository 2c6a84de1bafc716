package tracetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRandomTracesAreSound(t *testing.T) {
	for seed := range uint64(200) {
		tr := Random(seed, 1+int(seed))
		assert.NoError(t, tr.Check(), "seed %d", seed)
	}
}

func TestHostileTracesAreSound(t *testing.T) {
	for name, tr := range Hostile() {
		assert.NoError(t, tr.Check(), name)
	}
}

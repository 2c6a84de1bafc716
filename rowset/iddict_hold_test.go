package rowset

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker numbers many texts. Whoever asks for the texts meanwhile, as the loop may, does not wait for all of them.
func TestIDDictIsNotHeldForAllTexts(t *testing.T) {
	texts := make([][]byte, 500_000)
	for i := range texts {
		texts[i] = strconv.AppendInt(nil, int64(i), 10)
	}
	d := NewIDDict()
	numbered := make(chan error)
	go func() {
		ids, err := d.Number(nil, texts...)
		assert.Len(t, ids, len(texts))
		numbered <- err
	}()
	between := false
	for n := 0; n < len(texts); n = len(d.Texts()) {
		between = between || n > 0
	}
	assert.True(t, between, "some were numbered, and not all")
	require.NoError(t, <-numbered)
	assert.Equal(t, "499999", d.Texts()[499_999])
}

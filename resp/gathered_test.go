package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGatheredKeepsLittle(t *testing.T) {
	d := NewDecoder(Limits{})
	var g Gathered
	add := func(part []byte) {
		d.Reset(1)
		_, done, err := d.Decode(part)
		require.NoError(t, err)
		require.True(t, done)
		g.Add(d.Replies())
	}
	for range 2 {
		large := burst()
		add(large)
		add([]byte("$1\r\na\r\n"))
		require.Greater(t, g.Size(), 10*burstValues)
		require.Less(t, g.Size(), len(large))
		require.Equal(t, 2, g.Replies().Len())
		require.Equal(t, burstValues, g.Replies().At(0).Len())
		require.Equal(t, "a", string(g.Replies().At(1).Bytes()))
		g.Reset()
		assert.Zero(t, g.Size()+g.Replies().Len())
		require.LessOrEqual(t, len(g.tapes), 1)
		for _, tape := range g.tapes {
			assertSmallTape(t, tape)
		}
		assert.LessOrEqual(t, cap(g.all.list), gatheredKeep)
	}
}

package fileio

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than the reader's buffer
	for text, want := range map[string][]string{
		"": nil, "a\n\nb": {"a true", " true", "b false"}, "a\r\n": {"a\r true"}, long + "\n" + long: {long + " true", long + " false"},
	} {
		r := NewLineReader(strings.NewReader(text), 100_001)
		var got []string
		for {
			line, whole, err := r.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			got = append(got, fmt.Sprint(string(line), " ", whole))
			assert.Equal(t, len(got), r.Number())
		}
		assert.Equal(t, want, got)
	}
	r := NewLineReader(strings.NewReader("ab\nabc\n"), 3)
	_, _, err := r.Next()
	require.NoError(t, err)
	_, _, err = r.Next()
	require.EqualError(t, err, "line 2 is longer than 3 bytes")
}

package resp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reply that nobody keeps is checked as any other, wherever its bytes are cut.
func TestASkippedBulkEndsWhereItsLengthSays(t *testing.T) {
	for text, sound := range map[string]bool{"$5\r\nhello\r\n+next\r\n": true, "$5\r\nhello\n\n+next\r\n": false, "$5\r\nhelloworld\r\n": false} {
		for cut := range len(text) {
			d := NewDecoder(Limits{})
			d.Reset(2)
			d.skipNext()
			buf, done, err := []byte(text[:cut]), false, error(nil)
			for _, more := range []string{"", text[cut:]} {
				buf = append(buf, more...)
				for err == nil && !done {
					n := 0
					n, done, err = d.Decode(buf)
					if buf = buf[n:]; n == 0 {
						break
					}
				}
			}
			if !sound {
				assert.ErrorIs(t, err, ErrProtocol, "%q cut at %d", text, cut)
				continue
			}
			require.NoError(t, err, "cut at %d", cut)
			assert.True(t, done, "cut at %d", cut)
		}
	}
}

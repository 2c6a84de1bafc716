package serve

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/outcome"
)

// A message is one short line, whatever the error contains.
func FuzzMessage(f *testing.F) {
	f.Add("a text", "detail\r\n+OK")
	f.Add("ä\x00\x7f\u2028", string(make([]byte, 600)))
	f.Add("\u0080", "")
	f.Fuzz(func(t *testing.T, text, detail string) {
		r := Reply{Class: outcome.Internal, err: &rankd.Error{Text: text, Detail: detail}}
		message := r.Message()
		require.LessOrEqual(t, len(message), messageMax)
		require.True(t, utf8.ValidString(message))
		for _, c := range message {
			require.False(t, unicode.IsControl(c), "%q", message)
		}
	})
}

func FuzzTraceParent(f *testing.F) {
	f.Add([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	f.Add([]byte("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, parent []byte) {
		var id traceID
		id.set(parent)
		if text := id.String(); text != "" {
			require.Regexp(t, "^[0-9a-f]{32}$", text)
			require.Equal(t, text, string(parent[3:35]))
		}
	})
}

func TestTraceParent(t *testing.T) {
	for parent, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":       "0af7651916cd43dd8448eb211c80319c",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later": "0af7651916cd43dd8448eb211c80319c",
		"00-0af7651916cd43dd8448eb211c80319C-b7ad6b7169203331-01":       "",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01":       "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0":        "",
		"": "",
	} {
		var id traceID
		id.set([]byte(parent))
		assert.Equal(t, want, id.String(), parent)
	}
}

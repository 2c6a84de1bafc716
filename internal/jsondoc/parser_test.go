package jsondoc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A parser's earlier documents change nothing, whether they were read to their ends or not.
func FuzzAParserIsUsedAgain(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": null}], "c": "d\u0041"}`), []byte(`{"a": [1,`))
	f.Add([]byte("\ufeff[1]"), []byte(`"x`))
	f.Add([]byte(strings.Repeat("[", 3000)), []byte(`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`))
	var p Parser
	f.Fuzz(func(t *testing.T, first, second []byte) {
		for _, doc := range [][]byte{first, second, first} {
			want, wantErr := Parse(doc)
			text := append([]byte(nil), doc...)
			got, err := p.Parse(text)
			clear(text) // The caller may use it again at once.
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
		require.Empty(t, p.text)
		require.Equal(t, [8]Member{}, p.room, "it holds nothing of what it has read")
	})
}

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
)

// A sample draws by the texts of ids, because the numbers that stand for them differ between
// requests.
func TestSampleOfIDsThatAreStrings(t *testing.T) {
	var want []string
	for first := range 5 {
		ids := rowset.NewIDDict()
		names := strings.Fields("a b c d e f g h")
		names = append(names[first:], names[:first]...)
		var texts [][]byte
		for _, name := range names {
			texts = append(texts, []byte(name))
		}
		rows, err := ids.Number(nil, texts...)
		require.NoError(t, err)
		out, err := rankdtest.Run(specNamed(t, "core::sample"), rankdtest.Case{Params: map[string]any{"count": 4, "seed": 9}, Inputs: rankdtest.Inputs(rankdtest.Rows(rows...)),
			Registry: textRegistry(), UserIDText: "u", Entity: "product", IDs: ids})
		require.NoError(t, err)
		var got []string
		for _, id := range rankdtest.IDs(out) {
			got = append(got, ids.Texts().At(id))
		}
		if want == nil {
			want = got
		}
		require.Len(t, got, 4)
		assert.Equal(t, want, got)
	}
}

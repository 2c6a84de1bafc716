package recorder

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A recorded column takes memory for the rows that it has. One of nulls that would be vectors takes little in a file, and is refused
// before it takes much.
func TestDecodeIsBounded(t *testing.T) {
	nulls := func(rows int, dims uint64) []byte {
		return append(binary.AppendUvarint([]byte{byte(registry.Vector)}, dims), bytes.Repeat([]byte{0}, rows)...)
	}
	for _, c := range []struct {
		name    string
		text    []byte
		rows    int
		refusal string
	}{
		{"fewer rows than it says", nulls(3, 2), 1 << 40, "has 1099511627776 rows"},
		{"many null vectors", nulls(1<<20, registry.VectorDimsMax), 1 << 20, "has 1048576 rows"},
		{"more bytes than rows", nulls(4, 2), 3, "1 bytes too many"},
		{"a few", nulls(3, 2), 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var column rowset.Column
			var err error
			allocated := testing.AllocsPerRun(1, func() { column, err = decode(c.text, c.rows, 0) })
			assert.Less(t, allocated, 100.0)
			if c.refusal != "" {
				assert.ErrorContains(t, err, c.refusal)
				return
			}
			require.NoError(t, err)
			_, ok := column.(*rowset.VectorColumn).Value(c.rows - 1)
			assert.False(t, ok)
		})
	}
}

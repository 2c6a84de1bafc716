package plantest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
)

// FuzzDataset: a test's data is refused, or Redis stores it, or Redis refuses it with an error.
func FuzzDataset(f *testing.F) {
	for _, doc := range []string{
		`{}`, `{"a": ["string", 1.5], "b": ["hash", {"f": true}], "c": ["list", [1, "x"]], "d": ["set", [9007199254740993]], "e": ["sorted_set", {"m": -1}]}`,
		`{"a": ["hash", null]}`, `{"a": ["set", {}]}`, `{"a": []}`, `[]`, `{"a": ["string", [null]]}`, `{"": ["list", []]}`,
	} {
		f.Add([]byte(doc))
	}
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(f, err)
	f.Cleanup(redis.Close)
	f.Fuzz(func(_ *testing.T, doc []byte) {
		var d dataset
		if json.Unmarshal(doc, &d) == nil {
			_ = redis.Replace(d.values)
		}
	})
}

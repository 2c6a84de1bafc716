package rowset_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rowset"
)

// TestIDDict: several goroutines number the same texts in different orders. Each number leads
// back to its text.
func TestIDDict(t *testing.T) {
	d := rowset.NewIDDict()
	var of [4]map[string]int64
	var all sync.WaitGroup
	for worker := range of {
		of[worker] = make(map[string]int64)
		all.Go(func() {
			for round := range 50 {
				var texts [][]byte
				for i := range 40 {
					texts = append(texts, fmt.Appendf(nil, "%d-%s", (i*7+round*worker)%900, strings.Repeat("x", i%30)))
				}
				ids, err := d.Number([]int64{-1}, texts...)
				assert.NoError(t, err)
				known := d.Texts()
				for i, text := range texts {
					assert.Equal(t, string(text), known.At(ids[i+1]))
					of[worker][string(text)] = ids[i+1]
					clear(text) // The dictionary has its own copy.
				}
			}
		})
	}
	all.Wait()
	for text, id := range of[0] {
		for _, other := range of[1:] {
			if same, ok := other[text]; ok {
				assert.Equal(t, id, same, text)
			}
		}
		assert.Equal(t, text, d.Texts().At(id))
	}
}

func TestValidID(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, 255: true, 256: true, 257: false} {
		assert.Equal(t, want, rowset.ValidID(strings.Repeat("x", n)), n)
		assert.Equal(t, want, rowset.ValidID(make([]byte, n)), n)
	}
}

func TestIDDictIsBounded(t *testing.T) {
	d, n := rowset.NewIDDict(), 0
	number := func() error {
		texts := make([][]byte, 1024)
		for i := range texts {
			texts[i] = fmt.Appendf(nil, "%0*d", rowset.IDBytesMax, n)
			n++
		}
		_, err := d.Number(nil, texts...)
		return err
	}
	for n < 64<<20/rowset.IDBytesMax {
		require.NoError(t, number())
	}
	assert.ErrorIs(t, number(), rowset.ErrTooManyIDs)
}

func FuzzIDs(f *testing.F) {
	f.Add([]byte("sku-1\nsku-2\n\nsku-1"))
	f.Fuzz(func(t *testing.T, entries []byte) {
		d := rowset.NewIDDict()
		var valid [][]byte
		for entry := range strings.SplitSeq(string(entries), "\n") {
			if rowset.ValidID([]byte(entry)) {
				valid = append(valid, []byte(entry))
			} else if entry != "" && len(entry) <= rowset.IDBytesMax {
				t.Fatalf("%q is refused", entry)
			}
		}
		ids, err := d.Number(nil, valid...)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			if got := d.Texts().At(id); got != string(valid[i]) {
				t.Fatalf("number %d of %q is that of %q", id, valid[i], got)
			}
			if first := slices.IndexFunc(valid, func(v []byte) bool { return string(v) == string(valid[i]) }); ids[first] != id {
				t.Fatalf("%q has the numbers %d and %d", valid[i], ids[first], id)
			}
		}
	})
}

package rowset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rowset"
)

// Rows have equal codes if and only if they have equal strings, and the code is the place of such a string.
func TestCodesAgreeWithStrings(t *testing.T) {
	lend := lender(t)
	forRandom(t, 400, func(t *testing.T, rng *rand.Rand) {
		rs := rowsettest.RowSet(rng, 2500)
		for _, key := range rowsettest.StringKeys {
			c := rs.Batch.String(key)
			if c == nil {
				continue
			}
			codes, codeOf := c.Codes(lend(rng), rs), make(map[string]int32)
			for pos := range rs.N {
				code := rowset.CodeAt(codes, c.Places[rs.Row(pos)])
				text, ok := c.Value(int(rs.Row(pos)))
				if require.Equal(t, ok, code != rowset.NullCode); !ok {
					continue
				}
				require.Equal(t, text, c.Dict.Values[code])
				if _, known := codeOf[text]; !known {
					codeOf[text] = code
				}
				require.Equal(t, codeOf[text], code)
			}
		}
	})
}

// titles returns a column with n rows of so many different strings.
func titles(n, different int) *rowset.StringColumn {
	b := rowset.NewStringBuilder(3001, n)
	for i := range n {
		b.Append(fmt.Appendf(nil, "Title of item %d", i%different))
	}
	return b.Column().(*rowset.StringColumn)
}

// All who have a dictionary have the same codes, whoever asks first, and however many ask at once.
func TestManyAskForCodesAtOnce(t *testing.T) {
	for range 20 {
		c := titles(1000, 300)
		rs := rowset.Dense(rowset.NewBatch(make([]int64, 1000), c))
		var done sync.WaitGroup
		for i := range 4 {
			done.Go(func() {
				of := rs
				if i%2 == 1 {
					of = rowset.Concat(nil, rowset.Take(rs, 900))
				}
				out, err := rowset.Dedupe(nil, nil, of, rowset.Distinction{By: 3001})
				assert.NoError(t, err)
				assert.Equal(t, 300, out.N)
				codes := of.Batch.String(3001).Codes(nil, of)
				assert.Same(t, &c.Codes(nil, rs)[0], &codes[0])
			})
		}
		done.Wait()
	}
}

// A column whose values repeat needs no codes. Where nearly all differ only long ones are told apart, since they would take much memory.
func TestBuildersShareValues(t *testing.T) {
	for _, c := range []struct{ rows, different, length, places int }{
		{0, 1, 1, 0}, {1, 1, 1, 1}, {4, 3, 500, 3}, {5, 5, 1, 5}, {1000, 12, 127, 12}, {1000, 60, 127, 60}, {1000, 200, 127, 1000}, {1000, 200, 128, 200}, {1000, 500, 5000, 500},
	} {
		b := rowset.NewStringBuilder(3001, c.rows)
		for i := range c.rows {
			b.Append(fmt.Appendf(nil, "%0*d", c.length, i%c.different))
		}
		column := b.Column().(*rowset.StringColumn)
		assert.Len(t, column.Dict.Values, c.places, "%+v", c)
		assert.Equal(t, c.places <= c.different, column.Codes(nil, rowset.RowSet{N: c.rows}) == nil, "%+v", c)
		for i := range c.rows {
			text, _ := column.Value(i)
			require.Equal(t, fmt.Sprintf("%0*d", c.length, i%c.different), text)
		}
	}
}

// Nodes that reorder, join and copy rows leave the bytes of strings where they are.
func TestStringsStayWhereTheyAre(t *testing.T) {
	c, other := titles(300, 300), titles(100, 100)
	rs := rowset.Dense(rowset.NewBatch(make([]int64, 300), c))
	at := func(of rowset.RowSet) (at []*byte) {
		for i := range of.N {
			text, _ := of.Batch.String(3001).Value(int(of.Row(i)))
			at = append(at, unsafe.StringData(text))
		}
		return at
	}
	half, few := rowset.RowSet{Batch: rs.Batch, Rows: []int32{7, 5, 299}, N: 3}, rowset.Dense(rowset.NewBatch(make([]int64, 100), other))
	out := rowset.Concat(nil, half, few, rs, few, half)
	assert.Equal(t, slices.Concat(at(half), at(few), at(rs), at(few), at(half)), at(out))
	sorted, err := rowset.Sort(nil, nil, out, 3001, true)
	require.NoError(t, err)
	assert.ElementsMatch(t, at(out), at(sorted))
	assert.Same(t, out.Batch, sorted.Batch)
	again := rowset.Concat(nil, rowset.RowSet{Batch: out.Batch, Rows: []int32{3, 1}, N: 2})
	assert.Equal(t, []*byte{at(out)[3], at(out)[1]}, at(again))
	assert.Len(t, again.Batch.String(3001).Dict.Values, 2, "what no row has is left behind")
}

// Strings that nobody should have sent are strings like others.
func TestDamagedStrings(t *testing.T) {
	long := strings.Repeat("é", 32<<10)
	values := []string{"", "\x00", "a\x00", "a", "\xff\xfe", "\xc3", long, long[:len(long)-1], "ß"}
	for n := range 3 {
		b := rowset.NewStringBuilder(3001, 500)
		for i := range 500 {
			value := values[i%len(values)]
			if n > 0 {
				value += strings.Repeat("-", i%(n*7))
			}
			b.Append([]byte(value))
		}
		rs := rowset.Dense(rowset.NewBatch(make([]int64, 500), b.Column()))
		want := map[string]bool{}
		for i := range rs.N {
			text, _ := rs.Batch.String(3001).Value(i)
			want[text] = true
		}
		out, err := rowset.Dedupe(nil, nil, rs, rowset.Distinction{By: 3001})
		require.NoError(t, err)
		assert.Equal(t, len(want), out.N)
		ranked, err := rowset.Sort(nil, nil, out, 3001, false)
		require.NoError(t, err)
		last := ""
		for i := range ranked.N {
			text, _ := ranked.Batch.String(3001).Value(int(ranked.Row(i)))
			require.True(t, i == 0 || last < text, "%d", i)
			last = text
		}
	}
}

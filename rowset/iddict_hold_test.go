package rowset

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker numbers many texts. Whoever asks for the texts meanwhile, as the loop may, does not wait for all of them.
func TestIDDictIsNotHeldForAllTexts(t *testing.T) {
	texts := make([][]byte, 500_000)
	for i := range texts {
		texts[i] = strconv.AppendInt(nil, int64(i), 10)
	}
	d := NewIDDict()
	numbered := make(chan error)
	go func() {
		ids, err := d.Number(nil, texts...)
		assert.Len(t, ids, len(texts))
		numbered <- err
	}()
	between := false
	for n := 0; n < len(texts); n = d.Texts().Len() {
		between = between || n > 0
	}
	assert.True(t, between, "some were numbered, and not all")
	require.NoError(t, <-numbered)
	assert.Equal(t, "499999", d.Texts().At(499_999))
}

// Numbering a text moves a bounded number of others, however many there are, and copies no list of all of them.
func TestIDDictGrowsByBoundedSteps(t *testing.T) {
	d, most := NewIDDict(), 0
	for i := range 300_000 {
		moved := d.index.moved
		ids, err := d.Number(nil, strconv.AppendInt(nil, int64(i), 10))
		require.NoError(t, err)
		require.EqualValues(t, i, ids[0])
		most = max(most, d.index.moved-moved)
	}
	assert.LessOrEqual(t, most, segmentSlotsMax)
	assert.LessOrEqual(t, len(d.index.segments), 300_000/64, "the list of segments is copied at times")
	assert.Len(t, d.own.full, 300_000/textChunk)
	for i := 0; i < 300_000; i += 7 {
		id, ok := d.Find(strconv.Itoa(i))
		require.True(t, ok)
		require.EqualValues(t, i, id)
	}
	_, ok := d.Find("300000")
	assert.False(t, ok)
}

// A dictionary that extends another knows its texts without a look at each, and goes on after them.
func TestIDDictExtends(t *testing.T) {
	for _, n := range []int{0, 1, dictScanMax, dictScanMax + 1, textChunk, 5000} {
		base, own := NewIDDict(), 0
		for i := range n {
			_, err := base.Number(nil, strconv.AppendInt(nil, int64(i), 10))
			require.NoError(t, err)
		}
		two := base.Extend() // extends twice below
		numbers := two.Merge(func() *IDDict {
			d := NewIDDict()
			_, err := d.Number(nil, []byte("1"), []byte("x"), []byte("0"))
			require.NoError(t, err)
			return d
		}())
		for _, d := range []*IDDict{base.Extend(), two.Extend()} {
			before := d.Texts().Len()
			ids, err := d.Number(nil, []byte("y"), []byte("0"), []byte("4999"), []byte("y"), []byte("x"))
			require.NoError(t, err)
			texts := d.Texts()
			for i, text := range []string{"y", "0", "4999", "y", "x"} {
				assert.Equal(t, text, texts.At(ids[i]))
			}
			assert.Equal(t, ids[0], ids[3])
			for i := range n {
				id, ok := d.Find(strconv.Itoa(i))
				require.True(t, ok)
				require.EqualValues(t, i, id)
				require.Equal(t, strconv.Itoa(i), texts.At(id))
			}
			own = d.own.len()
			assert.Equal(t, before+own, texts.Len())
			assert.True(t, texts.Shares(d.Texts()))
			assert.False(t, texts.Shares(base.Texts()))
			for _, of := range [][]int64{ids, ids[:1], make([]int64, 2*texts.Len()+1)} {
				column := texts.Column(of)
				seen := make(map[string]bool)
				for _, value := range column.Dict.Values {
					require.False(t, seen[value], "values are distinct")
					seen[value] = true
				}
				for i, id := range of {
					require.Equal(t, texts.At(id), column.Dict.Values[column.Places[i]])
				}
			}
		}
		for i, text := range []string{"1", "x", "0"} {
			assert.Equal(t, text, two.Texts().At(numbers[i]))
		}
	}
	values := make([]string, 3000)
	for i := range values {
		values[i] = strconv.Itoa(i)
	}
	for _, n := range []int{0, 1, 1023, 1024, 1025, 2048, 3000} {
		texts := TextsOf(values[:n])
		require.Equal(t, n, texts.Len())
		for i := range n {
			require.Equal(t, values[i], texts.At(int64(i)))
		}
		assert.Equal(t, n > 0, texts.Shares(TextsOf(values[:n])))
	}
}

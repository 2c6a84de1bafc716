package rowcache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
)

// get is Find of one key.
func (t *Table) get(key []byte, shape Shape, now, oldest clock.Time) (value []byte, sent clock.Time, ok bool) {
	var found [1][]byte
	hits, _, sent := t.Find(key, []int32{int32(len(key))}, found[:], shape, now, oldest)
	return found[0], sent, hits == 1
}

// check checks that index and rings agree, and that the bound holds.
func (t *Table) check(tb testing.TB, maxBytes int) {
	tb.Helper()
	entries := 0
	for i, s := range t.index {
		if s == 0 {
			continue
		}
		entries++
		e := t.entry(s)
		require.Zero(tb, e[atDead])
		require.True(tb, s.has(e.hash()))
		for j := e.hash(); j&uint64(len(t.index)-1) != uint64(i); j++ {
			require.NotZero(tb, t.slot(j), "a gap before slot %d", i)
		}
	}
	require.Equal(tb, t.entries, entries)
	for _, r := range [...]*ring{&t.small, &t.main} {
		for c, live := *r, 0; ; {
			e, ok := c.oldest()
			if !ok {
				break
			}
			if e[atDead] == 0 {
				live++
			}
			c.pop(e.size())
			require.GreaterOrEqual(tb, c.used, 0)
		}
	}
	require.LessOrEqual(tb, t.Stats().Bytes, maxBytes)
}

// A table never returns a value that a map with the same history does not have. It keeps what
// it has room for.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 24))
		const maxAge = 50 * time.Millisecond
		table := NewTable(BytesMin, maxAge)
		type id struct {
			key   string
			shape Shape
		}
		type read struct {
			value string
			token Token
			sent  clock.Time
		}
		kept, flying := map[id]read{}, map[id]read{}
		keys, longest := 1+rng.IntN(8000), 1<<rng.IntN(13)
		now := clock.First
		hits := 0
		for step := range 30_000 {
			now = now.Add(time.Duration(rng.IntN(1000)) * time.Nanosecond)
			at := id{fmt.Sprint("key:", rng.IntN(keys)), Shape(rng.IntN(3))}
			switch rng.IntN(20) {
			case 0:
				table.Invalidate([]byte(at.key))
				for shape := range Shape(3) {
					delete(kept, id{at.key, shape})
					if r, ok := flying[id{at.key, shape}]; ok {
						r.value = "void"
						flying[id{at.key, shape}] = r
					}
				}
			case 1:
				if rng.IntN(500) == 0 {
					table.InvalidateAll(now)
					clear(kept)
					clear(flying)
				}
			case 2, 3, 4, 5, 6, 7, 8:
				flying[at] = read{fmt.Sprintf("%s %d %d %0*d", at.key, at.shape, step, rng.IntN(longest), 0), table.Token(), now}
			case 9, 10, 11, 12, 13:
				r, ok := flying[at]
				if !ok {
					continue
				}
				delete(flying, at)
				table.Put([]byte(at.key), at.shape, []byte(r.value), r.token, r.sent)
				if r.value == "void" {
					continue // It must not come back.
				}
				switch value, _, ok := table.get([]byte(at.key), at.shape, now, 0); {
				case !ok:
					delete(kept, at) // raced with another key, or too long, or old
				case string(value) == r.value:
					kept[at] = r
				default: // raced with another key: the earlier one stays
					require.Equal(t, kept[at].value, string(value))
				}
			default:
				value, sent, ok := table.get([]byte(at.key), at.shape, now, 0)
				if !ok {
					continue
				}
				hits++
				r, known := kept[at]
				require.True(t, known, "seed %d, step %d: %v", seed, step, at)
				require.Equal(t, r.value, string(value))
				require.Equal(t, r.sent, sent)
				require.LessOrEqual(t, now.Sub(sent), maxAge)
			}
			if step%3000 == 0 {
				table.check(t, BytesMin)
			}
		}
		table.check(t, BytesMin)
		require.Positive(t, hits)
	}
}

// A value is not kept if its key changes during the read, in whichever order the loop hears of
// it.
func TestRaces(t *testing.T) {
	key := []byte("item:7")
	get := func(table *Table) bool {
		_, _, ok := table.get(key, 1, 10, 0)
		return ok
	}
	for name, c := range map[string]struct {
		between func(*Table) // Token and Put
		after   func(*Table)
		kept    bool
	}{
		"nothing":                   {func(*Table) {}, func(*Table) {}, true},
		"the key changes":           {func(t *Table) { t.Invalidate(key) }, func(*Table) {}, false},
		"another key changes":       {func(t *Table) { t.Invalidate([]byte("item:8")) }, func(*Table) {}, true},
		"everything changes":        {func(t *Table) { t.InvalidateAll(3) }, func(*Table) {}, false},
		"the key changes later":     {func(*Table) {}, func(t *Table) { t.Invalidate(key) }, false},
		"everything changes later":  {func(*Table) {}, func(t *Table) { t.InvalidateAll(6) }, false},
		"by a clock that lags":      {func(*Table) {}, func(t *Table) { t.InvalidateAll(3) }, false},
		"in the same instant":       {func(*Table) {}, func(t *Table) { t.InvalidateAll(5) }, false},
		"another one changes later": {func(*Table) {}, func(t *Table) { t.Invalidate([]byte("item:8")) }, true},
		"its part changes":          {func(t *Table) { t.InvalidatePart(1, 3) }, func(*Table) {}, false},
		"its part changes later":    {func(*Table) {}, func(t *Table) { t.InvalidatePart(1, 3) }, false},
		"another part changes":      {func(t *Table) { t.InvalidatePart(0, 3) }, func(t *Table) { t.InvalidatePart(0, 6) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			table := NewDivided(0, time.Hour, 2)
			table.Watch(lastDigit{})
			table.Invalidate(key) // earlier: does not matter
			token := table.Token()
			c.between(table)
			table.Put(key, 1, []byte("v"), token, 5)
			c.after(table)
			assert.Equal(t, c.kept, get(table))
			table.Put(key, 1, []byte("w"), table.Token(), 8)
			assert.True(t, get(table))
		})
	}
}

// lastDigit is a source whose parts are odd and even digits. It trusts odd ones.
type lastDigit struct{}

func (lastDigit) Trusted() bool        { return false }
func (lastDigit) Covers([]byte) bool   { return true }
func (lastDigit) Track([]string)       {}
func (lastDigit) Part(key []byte) int  { return int(key[len(key)-1]-'0') % 2 }
func (lastDigit) Trusts(part int) bool { return part == 1 }

// Keys of a part that is not trusted are not found. Others are.
func TestPartsAreTrustedEachByItself(t *testing.T) {
	table := NewDivided(0, time.Hour, 2)
	table.Watch(lastDigit{})
	table.Rely(lastDigit{})
	for key, want := range map[string]bool{"item:7": true, "item:8": false} {
		table.Put([]byte(key), 1, []byte("v"), table.Token(), 5)
		_, _, ok := table.get([]byte(key), 1, 10, 0)
		assert.Equal(t, want, ok, key)
	}
	assert.EqualValues(t, 1, table.Stats().Untrusted)
	assert.EqualValues(t, 1, table.Stats().Misses)
	table.Rely(nil)
	_, _, ok := table.get([]byte("item:8"), 1, 10, 0)
	assert.True(t, ok, "by its age")
}

func TestAges(t *testing.T) {
	table := NewTable(0, time.Second)
	key := []byte("k")
	sent := clock.First.Add(time.Minute)
	table.Put(key, 1, nil, table.Token(), sent)
	for _, c := range []struct {
		now, oldest clock.Time
		ok          bool
	}{
		{sent, 0, true}, {sent.Add(time.Second), 0, true}, {sent.Add(time.Second + 1), 0, false},
		{sent.Add(5), sent, true}, {sent.Add(5), sent.Add(1), false},
	} {
		value, at, ok := table.get(key, 1, c.now, c.oldest)
		assert.Equal(t, c.ok, ok, c)
		assert.Empty(t, value)
		if ok {
			assert.Equal(t, sent, at)
		}
	}
	assert.Equal(t, Stats{Counts: Counts{Hits: 3, Misses: 2, HitAge: 1e9 + 5, Expired: 2}, Kept: 1, Entries: 1, Bytes: table.Stats().Bytes}, table.Stats())
}

// The bound is nearly used, and never exceeded.
func TestTableFillsItsBytes(t *testing.T) {
	for _, maxBytes := range []int{BytesMin, 5 << 20, 16 << 20} {
		table := NewTable(maxBytes, time.Hour)
		var key [8]byte
		for i := range 3 * maxBytes / 100 {
			binary.LittleEndian.PutUint64(key[:], uint64(i/2)) // each a second time, which counts as a use
			if _, _, ok := table.get(key[:], 1, 1, 0); !ok {
				table.Put(key[:], 1, make([]byte, 100), table.Token(), 1)
			}
		}
		table.check(t, maxBytes)
		assert.Greater(t, table.Stats().Bytes, maxBytes*95/100, maxBytes)
		assert.Greater(t, table.Stats().Entries*144, maxBytes*2/3, maxBytes)
	}
}

func BenchmarkGet(b *testing.B) {
	table := NewTable(64<<20, time.Hour)
	const keys = 10_000
	var key [16]byte
	copy(key[:], "item:")
	for i := range keys {
		binary.LittleEndian.PutUint64(key[8:], uint64(i))
		table.Put(key[:], 1, make([]byte, 80), table.Token(), 1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(key[8:], uint64(i*7919%keys))
		if _, _, ok := table.get(key[:], 1, 1, 0); !ok {
			b.Fatal("a miss")
		}
	}
}

// tracked is a source that notes what it is asked to track.
type tracked struct{ asked [][]string }

func (*tracked) Trusted() bool             { return true }
func (*tracked) Covers([]byte) bool        { return true }
func (s *tracked) Track(prefixes []string) { s.asked = append(s.asked, prefixes) }

// A prefix is asked for once, however often nodes read its keys.
func TestFollowAsksOnceForAPrefix(t *testing.T) {
	table, source := NewTable(0, time.Hour), &tracked{}
	table.Watch(source)
	for range 5 {
		table.Follow("a:")
		table.Follow("b:")
	}
	assert.Equal(t, [][]string{{"a:"}, {"a:", "b:"}}, source.asked)
}

func TestShapesAreBounded(t *testing.T) {
	table, seen := NewTable(0, time.Hour), map[Shape]bool{}
	for i := range shapesMax {
		s, ok := table.Shape(fmt.Sprint(i))
		require.True(t, ok, i)
		seen[s] = true
	}
	assert.Len(t, seen, shapesMax, "each text has a shape of its own")
	_, ok := table.Shape("one more")
	assert.False(t, ok)
	s, ok := table.Shape("7")
	assert.True(t, ok && seen[s], "a known one")
}

// Tiny entries fill the index before the rings are full. Some of its slots stay free, or a search would not end.
func TestIndexNeverFillsUp(t *testing.T) {
	table, most := NewTable(2*BytesMin-1, time.Hour), 0
	for i := range 3 * len(table.index) {
		key := binary.LittleEndian.AppendUint64(nil, uint64(i))
		table.Put(key, 1, nil, table.Token(), 1)
		table.get(key, 1, 1, 0) // A use: it will move to the main ring.
		require.LessOrEqual(t, table.entries, len(table.index)*7/8)
		most = max(most, table.entries)
	}
	table.check(t, 2*BytesMin-1)
	assert.Greater(t, most, len(table.index)*6/8, "the index is the bound here")
	_, _, ok := table.get([]byte("another one"), 1, 1, 0)
	assert.False(t, ok)
}

func TestFindTellsTheOldestOfItsValues(t *testing.T) {
	for _, sent := range [][2]clock.Time{{5, 8}, {8, 5}} {
		table, found := NewTable(0, time.Hour), [2][]byte{}
		table.Put([]byte("a"), 1, []byte("v"), table.Token(), sent[0])
		table.Put([]byte("b"), 1, []byte("w"), table.Token(), sent[1])
		hits, old, least := table.Find([]byte("ab"), []int32{1, 2}, found[:], 1, 10, 0)
		assert.Equal(t, [2]int{2, 0}, [2]int{hits, old})
		assert.EqualValues(t, 5, least, sent)
		_, old, _ = table.Find([]byte("ab"), []int32{1, 2}, found[:], 1, clock.Time(OldAfter)+8, 0)
		assert.Equal(t, 1, old, "of the two, one was read more than a minute ago")
	}
}

// Answers may come in another order than their questions were sent.
func TestAKeyNeverGoesBackInTime(t *testing.T) {
	table := NewTable(0, time.Hour)
	for _, sent := range []clock.Time{7, 8, 5} {
		table.Put([]byte("k"), 1, fmt.Append(nil, sent), table.Token(), sent)
	}
	value, sent, ok := table.get([]byte("k"), 1, 10, 0)
	assert.True(t, ok)
	assert.Equal(t, "8", string(value))
	assert.EqualValues(t, 8, sent)
	table.InvalidateAll(10)
	s := table.Stats()
	assert.Equal(t, [4]uint64{2, 1, 1, 0}, [4]uint64{s.Kept, s.Raced, s.Dropped, s.Evicted})
}

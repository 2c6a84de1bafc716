package rowcache

import (
	"container/list"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A policy is a cache of equally large entries. hit reports whether a key was there, and adds
// it if not.
type policy interface{ hit(key int) bool }

// lru is the baseline.
type lru struct {
	limit int
	order *list.List
	at    map[int]*list.Element
}

func newLRU(limit int) *lru { return &lru{limit, list.New(), make(map[int]*list.Element)} }

func (c *lru) hit(key int) bool {
	_, ok := c.touch(key)
	return ok
}

// touch returns the key that left, or -1.
func (c *lru) touch(key int) (left int, hit bool) {
	if e, ok := c.at[key]; ok {
		c.order.MoveToFront(e)
		return -1, true
	}
	c.at[key] = c.order.PushFront(key)
	if c.order.Len() <= c.limit {
		return -1, false
	}
	return c.remove(c.order.Back()), false
}

func (c *lru) remove(e *list.Element) int {
	key := c.order.Remove(e).(int)
	delete(c.at, key)
	return key
}

// tinyLFU is W-TinyLFU with exact counters in place of a sketch. It has a window of 1 % and a
// main part, of which a fifth is on probation.
type tinyLFU struct {
	window, probation, protected *lru
	counts                       map[int]int
	asked, limit                 int
}

func newTinyLFU(limit int) *tinyLFU {
	window, probation := limit/100, limit/5
	return &tinyLFU{newLRU(window), newLRU(limit), newLRU(limit - window - probation), make(map[int]int), 0, limit}
}

func (c *tinyLFU) hit(key int) bool {
	c.counts[key] = min(c.counts[key]+1, 15)
	if c.asked++; c.asked == 10*c.limit {
		c.asked = 0
		for k, n := range c.counts {
			if c.counts[k] = n / 2; n < 2 {
				delete(c.counts, k)
			}
		}
	}
	if c.protected.at[key] != nil {
		return c.protected.hit(key)
	}
	if e := c.probation.at[key]; e != nil {
		c.probation.remove(e)
		if demoted, _ := c.protected.touch(key); demoted >= 0 {
			c.probation.hit(demoted)
		}
		return true
	}
	candidate, hit := c.window.touch(key)
	if hit || candidate < 0 {
		return hit
	}
	if len(c.probation.at)+len(c.protected.at)+c.window.limit >= c.limit {
		victim := c.probation.order.Back()
		if victim == nil || c.counts[victim.Value.(int)] >= c.counts[candidate] {
			return false
		}
		c.probation.remove(victim)
	}
	c.probation.hit(candidate)
	return false
}

// byTable is a Table with values of 200 bytes.
type byTable struct{ *Table }

func (c byTable) hit(key int) bool {
	text := strconv.AppendInt(nil, int64(key), 10)
	_, _, ok := c.get(text, 1, 1, 0)
	if !ok {
		c.Put(text, 1, make([]byte, 200), c.Token(), 1)
	}
	return ok
}

// zipf returns a source of numbers below n whose weights are 1/(i+1)^s.
func zipf(rng *rand.Rand, n int, s float64) func() int {
	sums, sum := make([]float64, n), 0.0
	for i := range sums {
		sum += 1 / math.Pow(float64(i+1), s)
		sums[i] = sum
	}
	return func() int { return sort.SearchFloat64s(sums, rng.Float64()*sum) }
}

// The table hits about as often as W-TinyLFU, and more often than LRU, on Zipf's law, with and
// without scans. -v shows the ratios.
func TestHitRatios(t *testing.T) {
	const keys, requests = 60_000, 300_000
	for _, s := range []float64{0.9, 1.1} {
		for _, scans := range []bool{false, true} {
			run := func(p policy) float64 {
				rng := rand.New(rand.NewPCG(1, 2))
				next, hits, asked, scanned := zipf(rng, keys, s), 0, 0, keys
				for i := range requests {
					if scans && i%20_000 == 0 {
						for range 4000 { // keys that nobody asks for again
							p.hit(scanned)
							scanned++
						}
					}
					if i >= requests/3 {
						asked++
						if p.hit(next()) {
							hits++
						}
					} else {
						p.hit(next())
					}
				}
				return float64(hits) / float64(asked)
			}
			// The values are so long that the rings bound the entries, not the index.
			ours := byTable{NewTable(BytesMin, time.Hour)}
			limit := (ours.small.size() + ours.main.size()) / entrySize(5, 200)
			got, asLRU, asLFU := run(ours), run(newLRU(limit)), run(newTinyLFU(limit))
			t.Logf("zipf %.1f, scans %v, %d of %d keys: table %.4f, LRU %.4f, W-TinyLFU %.4f", s, scans, limit, keys, got, asLRU, asLFU)
			assert.Greater(t, got, asLRU+0.005)
			assert.Greater(t, got, asLFU-0.015)
		}
	}
}

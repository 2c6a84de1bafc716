package rowset

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// countdown says stop after n questions, and counts the questions.
type countdown struct{ n, asked int }

func (c *countdown) Cancelled() bool {
	c.asked++
	return c.asked > c.n
}

// shuffled returns n rows with random ids and a random float column 2. They also have a string
// column 3 with n different values, if wanted.
func shuffled(n int, withStrings bool) RowSet {
	r := rand.New(rand.NewPCG(1, 2))
	ids, values := make([]int64, n), make([]float64, n)
	for i := range ids {
		ids[i], values[i] = int64(r.Uint64()), r.Float64()
	}
	columns := []Column{&FloatColumn{Key: 2, Values: values}}
	if withStrings {
		c := &StringColumn{Key: 3, Places: make([]int32, n), Dict: &Dict{Values: make([]string, n)}}
		for i := range c.Places {
			c.Places[i], c.Dict.Values[i] = int32(i), strconv.FormatUint(r.Uint64(), 36)
		}
		columns = append(columns, c)
	}
	return Dense(NewBatch(ids, columns...))
}

func TestSortStops(t *testing.T) {
	rs := shuffled(100_000, true)
	fewOfMany := RowSet{Batch: rs.Batch, N: 20_000} // so that strings are compared, not ranked
	for _, c := range []struct {
		name string
		rs   RowSet
		key  registry.KeyID
	}{{"id", rs, 1}, {"float", rs, 2}, {"string by rank", rs, 3}, {"string by value", fewOfMany, 3}} {
		for _, desc := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, desc %t", c.name, desc), func(t *testing.T) {
				want, err := Sort(nil, nil, c.rs, c.key, desc)
				require.NoError(t, err)
				never := countdown{n: 1 << 30}
				got, err := Sort(&never, nil, c.rs, c.key, desc)
				require.NoError(t, err)
				assert.Equal(t, want, got, "a sort that is not stopped is a sort")
				require.Greater(t, never.asked, 10)
				for _, n := range []int{0, 1, 5, never.asked / 2, never.asked - 1} {
					stop := countdown{n: n}
					got, err := Sort(&stop, nil, c.rs, c.key, desc)
					assert.ErrorIs(t, err, ErrStopped)
					assert.Zero(t, got)
					assert.Equal(t, n+1, stop.asked, "once told, it does not ask again, but ends")
				}
			})
		}
	}
}

// A large sort that nobody waits for ends after a tiny part of its work. After each question,
// it does stopRows rows of work of one pass at most.
func TestLargeSortStopsSoon(t *testing.T) {
	rs := shuffled(5_000_000, false)
	for _, n := range []int{0, 10} {
		stop := countdown{n: n}
		_, err := Sort(&stop, nil, rs, 1, false)
		require.ErrorIs(t, err, ErrStopped)
		assert.Equal(t, n+1, stop.asked)
	}
	assert.Greater(t, rs.N/stopRows, 300, "a whole pass, of several, asks more often than that")
}

// Groups and aggregates ask again and again while they work.
func TestAggregateStops(t *testing.T) {
	rs := shuffled(100_000, false)
	of := make([]int32, rs.N)
	for name, run := range map[string]func(stop Stop) error{
		"count": func(stop Stop) error {
			_, _, err := Aggregate(stop, nil, rs, of, 1, Count, 0, &registry.Key{ID: 9, Type: registry.Int})
			return err
		},
		"sum": func(stop Stop) error {
			_, _, err := Aggregate(stop, nil, rs, of, 1, Sum, 2, &registry.Key{ID: 9, Type: registry.Float})
			return err
		},
		"least id": func(stop Stop) error {
			_, _, err := Aggregate(stop, nil, rs, of, 1, Min, registry.IDKey, &registry.Key{ID: 9, Type: registry.Int})
			return err
		},
		"sample": func(stop Stop) error {
			_, _, err := Sample(stop, nil, rs, 2, make([]float64, rs.N), 10)
			return err
		},
		"groups by two columns": func(stop Stop) error {
			_, _, err := Groups(stop, nil, rs, 2, registry.IDKey)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			never := countdown{n: 1 << 30}
			require.NoError(t, run(&never))
			require.Greater(t, never.asked, 5)
			for _, n := range []int{0, 1, never.asked - 1} {
				stop := countdown{n: n}
				require.ErrorIs(t, run(&stop), ErrStopped)
				assert.Equal(t, n+1, stop.asked)
			}
		})
	}
}

package builtin_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/task"
)

// cap keeps a row if fewer than max earlier rows have the same value. It keeps each row without
// a value.
func TestCapAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 2))
	for range 2 * randomRuns {
		in := rowsettest.RowSet(rng, 300)
		by := keyOf(rng, in, 5001, 3001, 5101)
		most := 1 + rng.IntN(4)
		want := tableOf(in)
		rows := want.rows
		want.rows = nil
		seen := map[any]int{}
		for _, row := range rows {
			value := row.get(by)
			if seen[value]++; value == nil || seen[value] <= most {
				want.rows = append(want.rows, row)
			}
		}
		out, err := runSource(t, "cap", rankdtest.Case{Params: map[string]any{"by": keyNames[by], "max": most}, Inputs: rankdtest.Inputs(in)})
		require.NoError(t, err)
		requireTable(t, want, out)
	}
}

// counters answers GET from texts by key, and notes the keys.
type counters struct {
	texts map[string]any
	asked []string
	err   error
}

func (s *counters) answer(command []string) any {
	s.asked = append(s.asked, command[1])
	if s.err != nil {
		return s.err
	}
	return s.texts[command[1]]
}

func TestFrequencyCapAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(26, 3))
	texts := []any{nil, "0", "1", "2", "2.5", "3", "1e9", "-4", "", "x", "nan", "99999999999999999999"}
	numbers := []float64{0, 0, 1, 2, 2.5, 3, 1e9, -4, 0, 0, 0, 99999999999999999999}
	for range 2 * randomRuns {
		in := rowsettest.RowSet(rng, 300)
		most := 1 + rng.IntN(3)
		by := keyOf(rng, in, 5001, 3001)
		key, mark := "seen:{user}:{id}", ""
		if by != registry.IDKey {
			mark = keyNames[by]
			key = "seen:{user}:{Key." + mark + "}"
		}
		world := &counters{texts: map[string]any{}}
		want, keys := tableOf(in), map[string]bool{}
		rows := want.rows
		want.rows = nil
		counts := map[string]float64{}
		for _, row := range rows {
			value := row.get(by)
			name := fmt.Sprint("seen:7:", value)
			if _, known := counts[name]; !known && value != nil {
				at := rng.IntN(len(texts))
				world.texts[name], counts[name] = texts[at], numbers[at]
			}
			if value != nil {
				keys[name] = true
			}
			if value == nil || counts[name] < float64(most) {
				want.rows = append(want.rows, row)
			}
		}
		out, err := runSource(t, "frequency_cap", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": key, "max": most},
			Inputs: rankdtest.Inputs(in), UserID: 7, Redis: world.answer})
		require.NoError(t, err)
		requireTable(t, want, out)
		assert.Len(t, world.asked, len(keys), "each counter is read once")
	}
}

func TestFrequencyCapFails(t *testing.T) {
	in := rankdtest.Inputs(rankdtest.Rows(1, 2))
	for _, tt := range []struct {
		name, want string
		reply      any
	}{
		{"a key of another type", `GET seen:1: WRONGTYPE`, errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")},
		{"a lost connection", "lost", rankdtest.Failure{Err: errors.New("lost")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "seen:{id}", "max": 1}, Inputs: in, Redis: func([]string) any { return tt.reply }}
			_, err := runSource(t, "frequency_cap", c)
			require.ErrorIs(t, err, task.ErrRedis)
			assert.ErrorContains(t, err, tt.want)
			c.Params["fail_open"], c.Shortfall = true, new(task.Shortfall)
			out, err := runSource(t, "frequency_cap", c)
			require.NoError(t, err)
			assert.Equal(t, []int64{1, 2}, rankdtest.IDs(out))
			assert.ErrorContains(t, c.Shortfall.Err, tt.want)
			c.Cancelled = true
			_, err = runSource(t, "frequency_cap", c)
			assert.ErrorIs(t, err, task.ErrCancelled)
		})
	}
}

// There may be more rows than one round trip can read.
func TestFrequencyCapReadsManyCounters(t *testing.T) {
	ids := make([]int64, 5000)
	for i := range ids {
		ids[i] = int64(i)
	}
	out, err := runSource(t, "frequency_cap", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "seen:{id}", "max": 3},
		Inputs: rankdtest.Inputs(rankdtest.Rows(ids...)), Redis: func(command []string) any {
			id, _ := strconv.Atoi(command[1][len("seen:"):])
			return strconv.Itoa(id % 5)
		}})
	require.NoError(t, err)
	assert.Equal(t, 3000, out.Len())
}

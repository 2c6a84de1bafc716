package builtin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/task"
)

// refusing is a Redis that refuses some keys. Lists and users are functions of the id.
type refusing map[string]bool

const refusal = "WRONGTYPE Operation against a key holding the wrong kind of value"

func listAt(id int64) (ids []int64) {
	for k := range id % 5 {
		ids = append(ids, 10*id+k)
	}
	return ids
}

func (r refusing) answer(command []string) any {
	if r[command[1]] {
		return errors.New(refusal)
	}
	var id int64
	switch command[0] {
	case "HGETALL":
		_, _ = fmt.Sscanf(command[1], "user:%d", &id)
		return []string{"country", fmt.Sprint("c", id)}
	default:
		_, _ = fmt.Sscanf(command[1][prefixLength(command[1]):], "%d", &id)
		entries := []string{}
		for _, id := range listAt(id) {
			entries = append(entries, fmt.Sprint(id))
		}
		return entries
	}
}

func prefixLength(key string) int {
	for i, c := range key {
		if c == ':' {
			return i + 1
		}
	}
	return 0
}

// A partial node has the rows whose keys did not fail, in their order, and counts the others.
func TestPartialRowsAreThoseWhoseKeysDidNotFail(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		refused := refusing{}
		in := make([]int64, rng.IntN(8))
		for i := range in {
			in[i] = int64(rng.IntN(40))
			if rng.IntN(3) == 0 {
				refused[fmt.Sprint("follow:", in[i])], refused[fmt.Sprint("media:", in[i])] = true, true
			}
			for _, id := range listAt(in[i]) {
				if rng.IntN(4) == 0 {
					refused[fmt.Sprint("user:", id)] = true
				}
			}
		}
		for _, c := range []struct {
			spec    task.Spec
			prefix  string
			isUsers bool
		}{{follow(), "follow:", true}, {media(), "media:", false}} {
			// Row by row:
			var ids []int64
			var countries []any
			dropped := 0
			for _, id := range in {
				if refused[fmt.Sprint(c.prefix, id)] {
					dropped++
					continue
				}
				for _, one := range listAt(id) {
					if c.isUsers && refused[fmt.Sprint("user:", one)] {
						dropped++
						continue
					}
					ids, countries = append(ids, one), append(countries, fmt.Sprint("c", one))
				}
			}
			var shortfall task.Shortfall
			out, err := rankdtest.Run(c.spec, rankdtest.Case{
				Params: map[string]any{"endpoint": "ep_0001", "fanout": 10}, Inputs: rankdtest.Inputs(rankdtest.Rows(in...)),
				Redis: refused.answer, Partial: true, Shortfall: &shortfall,
			})
			require.NoError(t, err, "seed %d", seed)
			require.NoError(t, out.Validate())
			require.Equal(t, len(ids), out.Len(), "seed %d", seed)
			for i, id := range ids {
				require.Equal(t, id, out.ID(i), "seed %d", seed)
			}
			if c.isUsers {
				require.Equal(t, len(countries), len(rankdtest.Values(out, 3001)))
				for i, want := range countries {
					require.Equal(t, want, rankdtest.Values(out, 3001)[i], "seed %d", seed)
				}
			}
			require.Equal(t, dropped, shortfall.Dropped, "seed %d", seed)
			require.Equal(t, dropped > 0, shortfall.Err != nil, "seed %d", seed)
		}
	}
}

func TestPartial(t *testing.T) {
	run := func(spec task.Spec, c rankdtest.Case, refused ...string) (ids []int64, shortfall task.Shortfall, err error) {
		redis := refusing{}
		for _, key := range refused {
			redis[key] = true
		}
		c.Redis, c.Shortfall, c.UserID = redis.answer, &shortfall, 7
		if c.Params == nil {
			c.Params = map[string]any{"endpoint": "ep_0001"}
		}
		out, err := rankdtest.Run(spec, c)
		if err == nil {
			ids = rankdtest.IDs(out)
		}
		return ids, shortfall, err
	}
	t.Run("the error names the first key that failed", func(t *testing.T) {
		_, shortfall, err := run(viewer(), rankdtest.Case{Partial: true}, "user:7")
		require.NoError(t, err)
		assert.Equal(t, 1, shortfall.Dropped)
		assert.ErrorContains(t, shortfall.Err, "HGETALL user:7: "+refusal)
		assert.ErrorIs(t, shortfall.Err, task.ErrRedis)
	})
	t.Run("a required node fails", func(t *testing.T) {
		_, _, err := run(viewer(), rankdtest.Case{Partial: true, Required: true}, "user:7")
		assert.ErrorContains(t, err, "HGETALL user:7: "+refusal)
	})
	t.Run("without leave the node fails", func(t *testing.T) {
		_, _, err := run(viewer(), rankdtest.Case{}, "user:7")
		assert.ErrorContains(t, err, "HGETALL user:7: "+refusal)
	})
	t.Run("a single long list", func(t *testing.T) {
		c := rankdtest.Case{
			Partial: true, Params: map[string]any{"endpoint": "ep_0001", "fanout": 2 * listPart}, Inputs: rankdtest.Inputs(rankdtest.Rows(9)),
		}
		ids, shortfall, err := run(follow(), c, "follow:9")
		require.NoError(t, err)
		assert.Empty(t, ids)
		assert.Equal(t, 1, shortfall.Dropped)
	})
	t.Run("a Redis that does not answer fails the node", func(t *testing.T) {
		_, _, err := run(viewer(), rankdtest.Case{Partial: true, Cancelled: true})
		assert.ErrorIs(t, err, task.ErrCancelled)
	})
}

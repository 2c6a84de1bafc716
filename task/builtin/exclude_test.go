package builtin_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/rowsettest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// fakeSets answers SMISMEMBER and ZMSCORE from a set of members with scores, and notes the commands.
type fakeSets struct {
	members  map[string]string // by member: its score
	commands []int             // how many members each command asked for
	name     string            // of the commands
	err      error
}

func (s *fakeSets) answer(command []string) any {
	s.commands = append(s.commands, len(command)-2)
	s.name = command[0] + " " + command[1]
	if s.err != nil {
		return s.err
	}
	answers := []any{}
	for _, member := range command[2:] {
		score, ok := s.members[member]
		switch {
		case command[0] == "SMISMEMBER" && ok:
			answers = append(answers, 1)
		case command[0] == "SMISMEMBER":
			answers = append(answers, 0)
		case ok:
			answers = append(answers, score)
		default:
			answers = append(answers, nil)
		}
	}
	return answers
}

func TestExcludeAsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 6))
	const now = 1_700_000_000
	for range 2 * randomRuns {
		in := rowsettest.RowSet(rng, 2500)
		sets := &fakeSets{members: make(map[string]string)}
		params := map[string]any{"endpoint": "ep_0001", "key": "seen:{user}"}
		by := registry.IDKey
		if rng.IntN(2) == 0 {
			by = keyOf(rng, in, 5001, 3001)
			params["by"] = keyNames[by]
		}
		text := func(value any) string { return fmt.Sprint(value) }
		for _, row := range tableOf(in).rows {
			if rng.IntN(4) == 0 {
				sets.members[text(row.get(by))] = strconv.Itoa(now - rng.IntN(100))
			}
		}
		c := rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(in), UserID: 7, Redis: sets.answer, Arrival: time.Unix(now, 0)}
		oldest := -1
		if rng.IntN(2) == 0 {
			params["kind"] = "sorted_set"
			if rng.IntN(2) == 0 {
				params["max_age"] = 50
				oldest = now - 50
			}
		}
		listed := map[string]bool{}
		if rng.IntN(3) == 0 {
			var ints []int64
			texts := []string{}
			for _, row := range tableOf(in).rows {
				if value := row.get(by); value != nil && rng.IntN(4) == 0 {
					listed[text(value)] = true
					if id, ok := value.(int64); ok {
						ints = append(ints, id)
					} else {
						texts = append(texts, value.(string))
					}
				}
			}
			if by == 3001 {
				params["context"], c.Context = "muted", map[string]any{"muted": texts}
			} else {
				params["context"], c.Context = "seen", map[string]any{"seen": ints}
			}
		}
		out, err := runSource(t, "exclude", c)
		require.NoError(t, err)
		requireTable(t, refExclude(tableOf(in), by, func(value any) bool {
			score, ok := sets.members[text(value)]
			n, _ := strconv.Atoi(score)
			return listed[text(value)] || ok && n >= oldest
		}), out)
		if len(sets.commands) > 0 {
			assert.True(t, strings.HasSuffix(sets.name, " seen:7"), sets.name)
		}
	}
}

// One batch of a few commands asks for all rows, however many there are.
func TestExcludeAsksInOneBatch(t *testing.T) {
	for _, tt := range []struct {
		rows     int
		commands []int
	}{
		{0, nil}, {1, []int{1}}, {1024, []int{1024}}, {1025, []int{1024, 1}}, {2048, []int{1024, 1024}}, {2500, []int{1024, 1024, 452}},
	} {
		ids := make([]int64, tt.rows)
		for i := range ids {
			ids[i] = int64(i)
		}
		sets := &fakeSets{}
		out, err := runSource(t, "exclude", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "seen"},
			Inputs: rankdtest.Inputs(rankdtest.Rows(ids...)), Redis: sets.answer})
		require.NoError(t, err)
		assert.Equal(t, tt.rows, out.Len())
		assert.Equal(t, tt.commands, sets.commands)
	}
}

func TestExcludeFails(t *testing.T) {
	old := errors.New("ERR unknown command 'SMISMEMBER', with args beginning with: 'seen:7'")
	for _, tt := range []struct {
		name  string
		reply any
		text  string
	}{
		{"an old server", old, "SMISMEMBER seen:7: ERR unknown command"},
		{"a key of another type", errors.New("WRONGTYPE Operation against a key holding the wrong kind of value"), "SMISMEMBER seen:7: WRONGTYPE"},
		{"a reply of another kind", "OK", "SMISMEMBER seen:7: reply is bulk string of 0, want array of"},
		{"a short reply", []any{1}, "reply is array of 1, want array of"},
		{"a lost connection", rankdtest.Failure{Err: errors.New("lost")}, "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "seen:{user}"}, Inputs: rankdtest.Inputs(rankdtest.Rows(1, 2, 3)),
				UserID: 7, Redis: func([]string) any { return tt.reply }}
			_, err := runSource(t, "exclude", c)
			assert.ErrorIs(t, err, task.ErrRedis)
			assert.ErrorContains(t, err, tt.text)

			c.Params["fail_open"], c.Params["context"], c.Context = true, "seen", map[string]any{"seen": []int64{2}}
			c.Shortfall = new(task.Shortfall)
			out, err := runSource(t, "exclude", c)
			require.NoError(t, err)
			assert.Equal(t, []int64{1, 3}, rankdtest.IDs(out), "the list of the context still counts")
			assert.ErrorContains(t, c.Shortfall.Err, tt.text)

			c.Required = true
			_, err = runSource(t, "exclude", c)
			assert.ErrorContains(t, err, tt.text)

		})
	}
}

// fail_open covers only failures of Redis. It does not cover a key that cannot be made, or the
// end of the request.
func TestFailOpenCoversOnlyRedis(t *testing.T) {
	c := rankdtest.Case{Inputs: rankdtest.Inputs(rankdtest.Rows(1, 2)), Context: map[string]any{"tab": strings.Repeat("x", 600)},
		Params: map[string]any{"endpoint": "ep_0001", "key": "seen:{tab}", "fail_open": true}, Redis: func([]string) any { return []any{0, 0} }}
	_, err := runSource(t, "exclude", c)
	require.ErrorContains(t, err, "a Redis key takes 512 at most")

	c.Context, c.Cancelled = map[string]any{"tab": "a"}, true
	_, err = runSource(t, "exclude", c)
	require.ErrorIs(t, err, task.ErrCancelled)
}

// A key may contain a text of the request. The error is still one line.
func TestExcludeFailsInOneLine(t *testing.T) {
	for _, reply := range []any{errors.New("WRONGTYPE"), "OK"} {
		_, err := runSource(t, "exclude", rankdtest.Case{Params: map[string]any{"endpoint": "ep_0001", "key": "seen:{tab}"},
			Inputs: rankdtest.Inputs(rankdtest.Rows(1)), Context: map[string]any{"tab": "D\nE"}, Redis: func([]string) any { return reply }})
		require.ErrorContains(t, err, `SMISMEMBER seen:D\nE: `)
		assert.NotContains(t, err.Error(), "\n")
	}
}

// A list of strings of the request drops rows by ids that are strings. Those that the request lists and no row has change nothing.
func TestExcludeStringIDs(t *testing.T) {
	for name, c := range map[string]struct {
		context map[string]any
		want    []string
	}{
		"some":       {map[string]any{"muted": []string{"b", "d", "nobody", ""}}, []string{"a", "c"}},
		"all":        {map[string]any{"muted": []string{"a", "b", "c", "d"}}, nil},
		"none":       {map[string]any{"muted": []string{}}, []string{"a", "b", "c", "d"}},
		"no list":    {nil, []string{"a", "b", "c", "d"}},
		"by the key": {map[string]any{"muted": []string{"a"}}, []string{"b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			ids := rowset.NewIDDict()
			rows, err := ids.Number(nil, []byte("a"), []byte("b"), []byte("c"), []byte("d"))
			require.NoError(t, err)
			params := map[string]any{"context": "muted"}
			if name == "by the key" {
				params["by"] = "id"
			}
			out, err := rankdtest.Run(specNamed(t, "core::exclude"), rankdtest.Case{Params: params, Inputs: rankdtest.Inputs(rankdtest.Rows(rows...)),
				Registry: textRegistry(), UserIDText: "u", Entity: "product", IDs: ids, Context: c.context})
			require.NoError(t, err)
			var got []string
			for _, id := range rankdtest.IDs(out) {
				got = append(got, ids.Texts().At(id))
			}
			assert.Equal(t, c.want, got)
		})
	}
	_, err := rankdtest.Run(specNamed(t, "core::exclude"), rankdtest.Case{Params: map[string]any{"context": "muted"}, Inputs: rankdtest.Inputs(rankdtest.Rows(1)),
		Registry: textRegistry(), UserIDText: "u"})
	assert.ErrorContains(t, err, "compares the id with strings")
}

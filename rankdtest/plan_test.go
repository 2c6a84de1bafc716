package rankdtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// A whole plan runs in an engine, over data of the test, at an hour that the test chooses. Its score is likes, halved for each hour of age.
func Example_plan() {
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	redis, err := rankdtest.StartRedisWith(map[string]any{
		"front_page": []int64{1, 2},
		"article:1":  map[string]any{"likes": 100, "created_at": noon.Add(-2 * time.Hour).Unix()},
		"article:2":  map[string]any{"likes": 30, "created_at": noon.Unix()},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()

	e, err := rankd.Open(rankd.Options{
		Redis: redis.Addr(), Now: func() time.Time { return noon },
		Env: "test", Registry: os.DirFS("testdata/news/registry"), Plans: os.DirFS("testdata/news/artifacts"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	answer, err := e.Rank(context.Background(), rankd.Request{Plan: "fresh", UserID: 1})
	if err != nil {
		log.Fatal(err)
	}
	for c := range answer.Candidates() {
		score, _ := c.Float("score")
		fmt.Println(c.ID(), score)
	}
	// Output:
	// 2 30
	// 1 25
}

// countingFS counts how often each file is opened.
type countingFS struct {
	fs.FS
	mu     sync.Mutex // guards opened
	opened map[string]int
}

func (c *countingFS) Open(name string) (fs.File, error) {
	c.mu.Lock()
	c.opened[name]++
	c.mu.Unlock()
	return c.FS.Open(name)
}

// TestPlanAtManyHours runs one plan on each model, on one engine, over a table of data, hours
// and answers. Deadlines use the true clock all the time.
func TestPlanAtManyHours(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		var now time.Time
		tables := &countingFS{FS: os.DirFS("testdata/news/registry"), opened: map[string]int{}}
		e, err := rankd.Open(rankd.Options{
			Redis: "redis://" + redis.Addr() + "/0", Now: func() time.Time { return now }, Timeout: time.Minute, AllowRequestTrace: true, AllowRequestNow: true, Model: model,
			Env: "test", Registry: tables, Plans: os.DirFS("testdata/news/artifacts"), Plan: "fresh",
		})
		require.NoError(t, err)
		defer e.Close()
		read := maps.Clone(tables.opened)
		for _, tt := range []struct {
			name string
			data string
			now  int64
			want []float64 // scores
		}{
			{"nothing", `{}`, 0, nil},
			{"an hour", `{"front_page": [7], "article:7": {"likes": 8, "created_at": 1000000}}`, 1_003_600, []float64{4}},
			{"two hours", `{"front_page": [7], "article:7": {"likes": 8, "created_at": 1000000}}`, 1_007_200, []float64{2}},
			{"in 1960", `{"front_page": [7, 8], "article:7": {"likes": 8, "created_at": -315600000}, "article:8": {"likes": 1, "created_at": -315600000}}`,
				-315_600_000, []float64{8, 1}},
			{"an article is gone", `{"front_page": ["7", "8"], "article:8": {"likes": 1e3, "created_at": 50}}`, 50, []float64{1000}},
		} {
			t.Run(string(model)+" "+tt.name, func(t *testing.T) {
				var data map[string]any
				require.NoError(t, json.Unmarshal([]byte(tt.data), &data))
				require.NoError(t, redis.Replace(data))
				now = time.Unix(tt.now, 0).UTC()
				a, err := e.Rank(t.Context(), rankd.Request{UserID: 1, Trace: true})
				require.NoError(t, err)
				var scores []float64
				for c := range a.Candidates() {
					score, ok := c.Float("score")
					require.True(t, ok)
					scores = append(scores, score)
				}
				assert.Equal(t, tt.want, scores)
				assert.Equal(t, now, a.Trace().At)

				now = time.Unix(0, 0).UTC() // The request says what now() is. The calendar dates the trace.
				a, err = e.Rank(t.Context(), rankd.Request{UserID: 1, Trace: true, Now: time.Unix(tt.now, 0)})
				require.NoError(t, err)
				for i, c := 0, slices.Collect(a.Candidates()); i < len(tt.want); i++ {
					score, _ := c[i].Float("score")
					assert.Equal(t, tt.want[i], score)
				}
				assert.Equal(t, now, a.Trace().At)
			})
		}
		assert.Equal(t, read, tables.opened, "the registry is read as the engine opens")
	}
}

// TestReplace stores a value of each kind. The tasks that read such values find it.
func TestReplace(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(map[string]any{"old": "1"})
	require.NoError(t, err)
	defer redis.Close()
	require.NoError(t, redis.Replace(map[string]any{
		"text": "a\x00b", "number": 12, "float": 1e21, "bool": true, "json": json.Number("1.50"), "no list": []any{},
		"list": []string{"x", "y"}, "ids": []int64{1, -2}, "mixed": []any{"a", 2.0, false},
		"hash": map[string]string{"f": "v"}, "fields": map[string]any{"f": 3.5}, "set": rankdtest.Set{"m", "m"},
		"scores": rankdtest.SortedSet{"low": -1, "high": 2.5},
	}))
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{"EXISTS", "old", "no list"}, "0"},
		{[]string{"GET", "text"}, "a\x00b"},
		{[]string{"GET", "number"}, "12"},
		{[]string{"GET", "float"}, "1000000000000000000000"},
		{[]string{"GET", "bool"}, "true"},
		{[]string{"GET", "json"}, "1.50"},
		{[]string{"LRANGE", "list", "0", "-1"}, "[x y]"},
		{[]string{"LRANGE", "ids", "0", "-1"}, "[1 -2]"},
		{[]string{"LRANGE", "mixed", "0", "-1"}, "[a 2 false]"},
		{[]string{"HGETALL", "hash"}, "[f v]"},
		{[]string{"HGETALL", "fields"}, "[f 3.5]"},
		{[]string{"SMEMBERS", "set"}, "[m]"},
		{[]string{"ZRANGE", "scores", "0", "-1", "WITHSCORES"}, "[low -1 high 2.5]"},
	} {
		assert.Equal(t, tt.want, asked(t, redis, tt.command...), "%q", tt.command)
	}
	err = redis.Replace(map[string]any{"a": nil, "b": []any{nil}, "c": map[string]any{"f": []any{}}, "d": struct{}{}, "e": "fine"})
	for _, key := range []string{`"a"`, `"b"`, `"c"`, `"d"`} {
		assert.ErrorContains(t, err, "key "+key)
	}
	assert.NotContains(t, err.Error(), `"e"`)
	assert.Equal(t, "12", asked(t, redis, "GET", "number"), "a wrong value changes nothing")
}

// asked returns the reply to a command.
func asked(t *testing.T, r *rankdtest.Redis, command ...string) (text string) {
	require.NoError(t, devredis.WithClient(t.Context(), r.Addr(), func(client *blocking.Client) error {
		var b resp.Batch
		b.Cmd(command...)
		return client.Do(&b, 0, func(replies resp.Replies) error {
			text = shown(replies.At(0))
			return nil
		})
	}))
	return text
}

func shown(r resp.Reply) string {
	switch r.Kind() {
	case resp.Integer:
		return fmt.Sprint(r.Int())
	case resp.Array:
		parts := []string{}
		for part := range r.All() {
			parts = append(parts, shown(part))
		}
		return fmt.Sprint(parts)
	default:
		return string(r.Bytes())
	}
}

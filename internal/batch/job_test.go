package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

func TestMain(m *testing.M) {
	if os.Getenv(killEnv) != "" {
		runToTheKill()
	}
	looptest.Main(m)
}

// world is an engine whose plan gives a row with the user as its id, and fails for some users.
type world struct {
	*rankd.Engine
	fails atomic.Int64 // users that are multiples of it fail; 0: none
	empty atomic.Int64 // users that are multiples of it have no rows
	flaky atomic.Int64 // the node fails for users that are multiples of it, the first time or always, by turns
	seen  sync.Map     // users for which it has failed
	ran   atomic.Int64
	stop  func(user int64) // is called for each user that runs
}

func newWorld(t *testing.T) *world {
	w, err := openWorld("")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

// openWorld opens a world whose plan has further members, and whose tables have further parameters.
func openWorld(members string, params ...string) (*world, error) {
	return openWorldOf(400, members, params...)
}

// openWorldOf opens a world whose model splits at that number.
func openWorldOf(split int, members string, params ...string) (*world, error) {
	model, err := os.ReadFile("../acceptance/data/testdata/models/example.json")
	if err != nil {
		return nil, err
	}
	model = bytes.Replace(model, []byte("[400,"), fmt.Appendf(nil, "[%d,", split), 1)
	w := &world{stop: func(int64) {}}
	tables := registrytest.BuiltIn()
	tables.Params += registrytest.Param(99, "country", "string", registrytest.Nullable, "context = true") + strings.Join(params, "")
	w.Engine, err = rankd.Open(rankd.Options{
		Registry: tables.FS(),
		Models:   fstest.MapFS{"ctr.json": {Data: model}},
		Plan:     "one", Redis: "127.0.0.1:1" /* not used */, Logger: slog.New(slog.DiscardHandler),
		Plans: fstest.MapFS{"one.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "one", "outputs": ["out"], ` + members + `
			"capabilities_required": ["cap.rankd.on_error.v1"], "nodes": [{"node_id": "out", "op": "test::one", "inputs": [], "on_error": {"fallback": "instead"}},
			{"node_id": "instead", "op": "test::instead", "inputs": []}]}`)}},
		Tasks: []task.Spec{{Op: "test::one", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			w.ran.Add(1)
			w.stop(c.UserID)
			if n := w.fails.Load(); n > 0 && c.UserID%n == 0 {
				return rowset.RowSet{}, errors.New("as it is meant to be")
			}
			if n := w.flaky.Load(); n > 0 && c.UserID%n == 0 {
				if _, seen := w.seen.Swap(c.UserID, true); !seen || c.UserID%(2*n) == 0 {
					return rowset.RowSet{}, errFlaky
				}
			}
			if n := w.empty.Load(); n > 0 && c.UserID%n == 0 {
				return rowset.Dense(&rowset.Batch{}), nil
			}
			return rowset.Dense(&rowset.Batch{IDs: []int64{c.UserID}}), nil
		}}, {Op: "test::instead", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
			if n := w.fails.Load(); n > 0 && c.UserID%n == 0 {
				return rowset.RowSet{}, errors.New("as it is meant to be")
			}
			return rowset.Dense(&rowset.Batch{IDs: []int64{c.UserID}}), nil
		}}},
	})
	return w, err
}

var errFlaky = errors.New("this time")

// numbers returns users 1 to n, one per line.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// job returns a job for these users, with a checkpoint after every ten.
func (w *world) job(t *testing.T, users, out string) *Job {
	u, err := NewUsers(strings.NewReader(users), "", w.Registry())
	require.NoError(t, err)
	return &Job{Engine: w.Engine, Users: u, InFlight: 4, CheckpointUsers: 10, Out: out}
}

// answered returns the users of a file of answers.
func answered(t *testing.T, path string) (users []string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		id, _, found := strings.Cut(strings.TrimPrefix(line, `{"request_id":"`), `"`)
		require.True(t, found)
		if !strings.Contains(line, `"candidates":[]`) {
			assert.Contains(t, line, `"candidates":[{"id":`+id+`}]`)
		}
		users = append(users, id)
	}
	return users
}

func TestAJobAnswersEachUserInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 40, 95} {
		w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
		sum, err := w.job(t, numbers(n), out).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, n, sum.Users)
		assert.Zero(t, sum.Failed+sum.Kept)
		assert.Equal(t, numbers(n), strings.Join(append(answered(t, out), ""), "\n"))
		left, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		assert.Len(t, left, 1, "only the answers")
	}
}

// A job that is interrupted at any user goes on behind what it has answered. Its output is the same.
func TestAJobGoesOn(t *testing.T) {
	const users = 57
	for at := int64(1); at <= users; at += 4 {
		w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
		w.fails.Store(7)
		ctx, cancel := context.WithCancel(t.Context())
		w.stop = func(user int64) {
			if user == at {
				cancel()
			}
		}
		_, err := w.job(t, numbers(users), out).Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.NoFileExists(t, out)
		w.stop = func(int64) {}
		w.ran.Store(0)
		sum, err := w.job(t, numbers(users), out).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, users, sum.Users)
		assert.Equal(t, users/7, sum.Failed)
		for class, f := range sum.Errors {
			assert.Equal(t, users/7, f.Count, class)
			assert.Contains(t, f.Example, "as it is meant to be")
		}
		assert.GreaterOrEqual(t, int64(sum.Kept), at-4)
		assert.EqualValues(t, users-sum.Kept, w.ran.Load(), "a kept user does not run again")
		var want []string
		for i := range users {
			if (i+1)%7 != 0 {
				want = append(want, fmt.Sprint(i+1))
			}
		}
		assert.Equal(t, want, answered(t, out))

		w.fails.Store(0)
		failed, err := os.ReadFile(FailedFile(out))
		require.NoError(t, err)
		again := filepath.Join(t.TempDir(), "again.jsonl")
		sum, err = w.job(t, string(failed), again).Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, users/7, sum.Users)
		assert.Equal(t, "7", answered(t, again)[0])
		assert.NoFileExists(t, FailedFile(again))
		_, err = w.job(t, numbers(users), out).Run(t.Context())
		require.NoError(t, err)
		assert.NoFileExists(t, FailedFile(out), "the file of the job before")
	}
}

func TestShardsShareTheUsers(t *testing.T) {
	const shards, users = 3, 200
	w := newWorld(t)
	seen := map[string]int{}
	for shard := range shards {
		out := filepath.Join(t.TempDir(), "answers.jsonl")
		j := w.job(t, numbers(users), out)
		j.Shard, j.Shards = shard, shards
		sum, err := j.Run(t.Context())
		require.NoError(t, err)
		assert.Greater(t, sum.Users, users/shards/2)
		for _, user := range answered(t, out) {
			seen[user]++
		}
	}
	assert.Len(t, seen, users)
	for user, n := range seen {
		assert.Equal(t, 1, n, user)
	}
	j := w.job(t, numbers(1), filepath.Join(t.TempDir(), "x"))
	j.Shard, j.Shards = 3, 3
	_, err := j.Run(t.Context())
	assert.ErrorContains(t, err, "the first one is 0")
}

func TestUsers(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		in    string
		form  Form
		want  []string
		fails string
	}{
		"lines":          {in: "1\n\n 2 \r\nsku-3", want: []string{`{"user_id": "1"}`, `{"user_id": "2"}`, `{"user_id": "sku-3"}`}},
		"requests":       {in: "{\"user_id\": 1}\n{\"user_id\": 2, \"context\": {}}\n", want: []string{`{"user_id": 1}`, `{"user_id": 2, "context": {}}`}},
		"a csv":          {in: "country,user_id\nDE,1\n,2\n\"a, \"\"b\"\"\",3\n", form: CSV, want: []string{`{"user_id": "1", "context": {"country":"DE"}}`, `{"user_id": "2"}`, `{"user_id": "3", "context": {"country":"a, \"b\""}}`}},
		"a mark":         {in: "\ufeffuser_id\n1\n", form: CSV, want: []string{`{"user_id": "1"}`}},
		"a csv of users": {in: "id\n1\n", form: CSV, fails: "no column user_id"},
		"nothing":        {in: ""},
		"an empty csv":   {in: "", form: CSV, fails: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := NewUsers(strings.NewReader(c.in), c.form, w.Registry())
			var docs []string
			for err == nil {
				var doc []byte
				if doc, _, err = u.Next(); err == nil {
					docs = append(docs, string(doc))
				}
			}
			assert.Equal(t, c.want, docs)
			if c.fails == "" {
				assert.Equal(t, io.EOF, err)
				assert.EqualValues(t, len(c.in), u.Read())
			} else {
				assert.ErrorContains(t, err, c.fails)
			}
		})
	}
}

// A user that cannot be parsed fails alone, and is in the file of users that failed.
func TestUsersThatAreWrong(t *testing.T) {
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	sum, err := w.job(t, "1\nx\n0\n2\n", out).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, sum.Errors["bad_request"].Count)
	assert.Equal(t, []string{"1", "2"}, answered(t, out))
	failed, err := os.ReadFile(FailedFile(out))
	require.NoError(t, err)
	assert.Equal(t, "{\"user_id\": \"x\"}\n{\"user_id\": \"0\"}\n", string(failed))
}

// Redis gets no more commands a second than the job allows, except those of the users under
// way.
func TestTheBoundOfCommands(t *testing.T) {
	const users, perSecond, inFlight, commands = 200, 4000, 4, 12
	redis, err := devredis.Start()
	require.NoError(t, err)
	defer redis.Close()
	e, err := rankd.Open(rankd.Options{Plan: "concat_plan", Redis: redis.Addr(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer e.Close()
	u, err := NewUsers(strings.NewReader(numbers(users)), "", e.Registry())
	require.NoError(t, err)
	j := &Job{Engine: e, Users: u, InFlight: inFlight, CommandsPerSecond: perSecond, Out: filepath.Join(t.TempDir(), "answers.jsonl")}
	sum, err := j.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, users, sum.Users)
	sent := uint64(0)
	for _, s := range e.Metrics().Redis {
		sent += s.Commands
	}
	assert.Greater(t, sent, uint64(users))
	assert.LessOrEqual(t, float64(sent), perSecond*(sum.Seconds+paceCredit.Seconds())+(inFlight+paceEvery)*commands)
}

// FuzzUsers reads any text as users in each form. Each document is one line.
func FuzzUsers(f *testing.F) {
	for _, seed := range []string{"1\n2\n", "{\"user_id\": 1}\n", "user_id,a\n1,\"x\ny\"\n", "\xff\x00\n", "user_id\n\"\n"} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(1))
	}
	e, err := rankd.Open(rankd.Options{Redis: "127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(f, err)
	f.Cleanup(func() { _ = e.Close() })
	f.Fuzz(func(t *testing.T, in string, form uint8) {
		u, err := NewUsers(strings.NewReader(in), [...]Form{"", CSV, Lines, JSONL}[form%4], e.Registry())
		for n := 0; err == nil; n++ {
			var doc []byte
			if doc, _, err = u.Next(); err == nil {
				assert.False(t, bytes.ContainsAny(doc, "\n"), "%q", doc)
				require.LessOrEqual(t, n, len(in))
			}
		}
	})
}

// TestAnswersThatCannotBeEncodedFail: rankd itself panics while it encodes the answers of even users, which fail alone.
func TestAnswersThatCannotBeEncodedFail(t *testing.T) {
	broken := &testworld.BrokenRows{Rows: 3}
	e, err := rankd.Open(rankd.Options{
		Plan: "p", Redis: "127.0.0.1:1" /* not used */, Logger: slog.New(slog.DiscardHandler), TraceSink: broken, TraceSample: 1, Tasks: []task.Spec{broken.Task()},
		Plans: fstest.MapFS{"p.plan.json": {Data: []byte(`{"schema_version": 1, "plan_name": "p", "outputs": ["out"],
			"nodes": [{"node_id": "out", "op": "test::broken", "inputs": []}]}`)}},
	})
	require.NoError(t, err)
	defer e.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	sum, err := (&world{Engine: e}).job(t, numbers(20), out).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 20, sum.Users)
	assert.Equal(t, 10, sum.Failed)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, 10, strings.Count(string(text), `"candidates":[{"id":1}`))
	assert.Equal(t, 10, strings.Count(string(text), "\n"))
}

package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/registrytest"
)

// interrupt runs a job until a user runs.
func (w *world) interrupt(t *testing.T, j *Job, at int64) {
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = func(user int64) {
		if user == at {
			cancel()
		}
	}
	_, err := j.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	w.stop = func(int64) {}
}

// usersFile writes a file of users.
func usersFile(t *testing.T, dir, text string) string {
	path := filepath.Join(dir, "users.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *world) jobOf(t *testing.T, users, out string) *Job {
	file, err := os.Open(users)
	require.NoError(t, err)
	j := w.job(t, "", out)
	j.Users, err = NewUsers(file, "", w.Registry())
	require.NoError(t, err)
	return j
}

// A batch that goes on refuses users that are done and options that differ, and names the difference.
func TestWhatHasChangedIsRefused(t *testing.T) {
	other, err := openWorld(`"log_level": "debug",`)
	require.NoError(t, err)
	defer other.Close()
	tables, err := openWorld("", registrytest.Param(98, "weight_of_age", "float", registrytest.Nullable))
	require.NoError(t, err)
	defer tables.Close()
	model, err := openWorldOf(500, "")
	require.NoError(t, err)
	defer model.Close()
	for name, c := range map[string]struct {
		users  string // in the second run; "": the same
		change func(*Job)
		want   string // "": the job goes on
	}{
		"nothing":                 {},
		"the last users":          {users: numbers(39) + "777\n"},
		"another first user":      {users: "777\n" + numbers(40)[2:], want: "users are others than those that were ranked"},
		"a later user":            {users: strings.Replace(numbers(40), "13\n", "777\n", 1), want: "users are others than those that were ranked"},
		"two users in turn":       {users: strings.Replace(numbers(40), "13\n14\n", "14\n13\n", 1), want: "users are others than those that were ranked"},
		"fewer users":             {users: numbers(12), want: "there are 12 users, and "},
		"no users":                {users: "\n", want: "there are 0 users, and "},
		"the plan":                {change: func(j *Job) { j.Engine = other.Engine }, want: "plan one: "},
		"the tables":              {change: func(j *Job) { j.Engine = tables.Engine }, want: "tables: "},
		"a model":                 {change: func(j *Job) { j.Engine = model.Engine }, want: "model ctr: "},
		"the form":                {change: func(j *Job) { j.Format = rankd.FormatFields }, want: "response: flat, now fields"},
		"the share":               {change: func(j *Job) { j.Shard, j.Shards = 1, 2 }, want: "share: 0/1, now 1/2"},
		"a setting":               {change: func(j *Job) { j.Settings = map[string]string{"--env": "prod"} }, want: "--env: none, now prod"},
		"retries":                 {change: func(j *Job) { j.RetryDegraded = true }, want: "retry of degraded users: false, now true"},
		"users between in flight": {change: func(j *Job) { j.InFlight, j.CheckpointUsers = 7, 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := newWorld(t), t.TempDir()
			out := filepath.Join(dir, "answers.jsonl")
			users := usersFile(t, dir, numbers(40))
			w.interrupt(t, w.jobOf(t, users, out), 27)
			if c.users != "" {
				users = usersFile(t, dir, c.users)
			}
			j := w.jobOf(t, users, out)
			if c.change != nil {
				c.change(j)
			}
			_, err := j.Run(t.Context())
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
				assert.ErrorContains(t, err, "--restart ranks all again")
				require.NoFileExists(t, out)
				j = w.jobOf(t, users, out)
				if c.change != nil {
					c.change(j)
				}
				j.Restart = true
				sum, err := j.Run(t.Context())
				require.NoError(t, err)
				assert.Zero(t, sum.Kept)
			}
			if c.change == nil {
				text, err := os.ReadFile(users)
				require.NoError(t, err)
				assert.Equal(t, strings.Fields(string(text)), append([]string{}, answered(t, out)...))
			}
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Len(t, left, 2, "users and answers")
		})
	}
}

// A job that was killed when all users were ranked does not finish the output of other users.
func TestTheEndIsRefusedToOtherUsers(t *testing.T) {
	for change, want := range map[string]string{numbers(26): "there are more users than the 25", numbers(24): "there are 24 users, and 25", numbers(25): ""} {
		w, dir := newWorld(t), t.TempDir()
		out := filepath.Join(dir, "answers.jsonl")
		j := w.jobOf(t, usersFile(t, dir, numbers(25)), out)
		j.disk.step = func(change, path string, do func() error) error {
			if change == "rename" && path == out {
				return errKilled
			}
			return do()
		}
		_, err := j.Run(t.Context())
		require.ErrorIs(t, err, errKilled)
		sum, err := w.jobOf(t, usersFile(t, dir, change), out).Run(t.Context())
		if want != "" {
			assert.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 25, sum.Kept)
		assert.Zero(t, sum.PerSecond, "nobody was ranked")
	}
}

func TestUsersThatChangeWhileTheyAreRead(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	out, users := filepath.Join(dir, "answers.jsonl"), usersFile(t, dir, numbers(40))
	w.stop = func(user int64) {
		if user == 15 {
			f, err := os.OpenFile(users, os.O_APPEND|os.O_WRONLY, 0)
			assert.NoError(t, err)
			_, err = f.WriteString("777\n")
			assert.NoError(t, errors.Join(err, f.Close()))
		}
	}
	_, err := w.jobOf(t, users, out).Run(t.Context())
	require.ErrorContains(t, err, "users.txt has changed while it was read: it had 111 bytes of")
	w.stop = func(int64) {}
	_, err = w.jobOf(t, users, out).Run(t.Context())
	require.NoError(t, err)
	assert.Len(t, answered(t, out), 41)
}

// A job refuses what an earlier one has left if a file differs from its checkpoint.
func TestFilesThatAreDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, out string)
		want   string
	}{
		"the answers have gone": {func(t *testing.T, out string) { require.NoError(t, os.Remove(out+partial)) }, "answers.jsonl.partial has 0 bytes, and had"},
		"they are shorter":      {func(t *testing.T, out string) { require.NoError(t, os.Truncate(out+partial, 5)) }, "answers.jsonl.partial has 5 bytes, and had"},
		"a checkpoint": {func(t *testing.T, out string) {
			require.NoError(t, os.Truncate(out+".checkpoints", 100))
		}, "answers.jsonl.checkpoints has something other than a checkpoint"},
		"a number of a checkpoint": {func(t *testing.T, out string) {
			text, err := os.ReadFile(out + ".checkpoints")
			require.NoError(t, err)
			other := regexp.MustCompile(`"done":\d+`).ReplaceAll(text, []byte(`"done":11`))
			require.NoError(t, os.WriteFile(out+".checkpoints", other, 0o600))
		}, "the first 11 users are others"},
		"another kind of file": {func(t *testing.T, out string) {
			require.NoError(t, os.WriteFile(out+".checkpoints", []byte("{\"user_id\": 1}\n"), 0o600))
		}, "answers.jsonl.checkpoints has something other than a checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
			w.interrupt(t, w.job(t, numbers(40), out), 27)
			c.damage(t, out)
			_, err := w.job(t, numbers(40), out).Run(t.Context())
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "--restart")
			j := w.job(t, numbers(40), out)
			j.Restart = true
			_, err = j.Run(t.Context())
			require.NoError(t, err)
			assert.Len(t, answered(t, out), 40)
		})
	}
}

// Answers of two generations are not mixed, although the engine would give them.
func TestAGenerationThatChanges(t *testing.T) {
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	j := w.job(t, numbers(40), out)
	plans, err := w.Engine.Plans()
	require.NoError(t, err)
	require.Len(t, plans, 1)
	r := &running{Job: j, digest: "another"}
	e := &Entry{Request: rankd.Request{UserID: 1}}
	e.Answer, err = w.Rank(t.Context(), e.Request)
	require.NoError(t, err)
	assert.ErrorContains(t, r.outcome(e), "have changed while the batch ran")
}

// TestACheckpointOfAJobThatEndsMeanwhile: what a job finds is in the file that it has locked, whenever that was replaced or removed.
func TestACheckpointOfAJobThatEndsMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoints")
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			err := os.WriteFile(path+".new", []byte(`{"state": "ranking", "done": 7}`), 0o600)
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			if err == nil {
				if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			}
			select {
			case <-stop:
				stopped <- err
				return
			default:
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 2000 {
		c, err := openCheckpoints(disk{}, path)
		require.NoError(t, err)
		info, err := c.file.Stat()
		require.NoError(t, err)
		require.NoError(t, c.damaged)
		require.Equal(t, info.Size() == 0, c.last.State == "", "%d bytes", info.Size())
		require.NoError(t, c.file.Close())
	}
	close(stop)
	require.NoError(t, <-stopped)
}

// A second process on an output ends with an error that names it.
func TestOneJobAtATime(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	out := filepath.Join(dir, "answers.jsonl")
	require.NoError(t, os.Symlink("answers.jsonl", filepath.Join(dir, "link")))
	runs, goOn := make(chan struct{}), make(chan struct{})
	w.stop = func(user int64) {
		if user == 15 {
			close(runs)
			<-goOn
		}
	}
	ended := make(chan error)
	go func() {
		_, err := w.job(t, numbers(40), out).Run(t.Context())
		ended <- err
	}()
	<-runs
	for _, name := range []string{out, filepath.Join(dir, "link")} {
		j := w.job(t, numbers(40), name)
		j.Restart = true
		_, err := j.Run(t.Context())
		assert.ErrorContains(t, err, fmt.Sprintf("process %d on ", os.Getpid()))
		assert.ErrorContains(t, err, "works on this output: see "+out+".checkpoints")
	}
	close(goOn)
	require.NoError(t, <-ended)
	assert.Len(t, answered(t, out), 40)
}

func TestWhereTheOutputGoes(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("file"), []byte("old"), 0o600))
	require.NoError(t, os.Symlink("file", in("link")))
	require.NoError(t, os.Symlink(in("link"), in("link to a link")))
	require.NoError(t, os.Symlink("nothing yet", in("dangling")))
	require.NoError(t, os.Symlink("loop", in("loop")))
	require.NoError(t, os.Mkdir(in("folder"), 0o700))
	require.NoError(t, os.Symlink("/dev/null", in("null")))
	require.NoError(t, os.Symlink("/dev/full", in("full")))
	for name, c := range map[string]struct{ at, fails string }{
		"file": {at: "file"}, "link": {at: "file"}, "link to a link": {at: "file"}, "dangling": {at: "nothing yet"},
		"in/a/folder": {at: "in/a/folder"}, "null": {}, "full": {fails: "no space left"},
		"loop": {fails: "is a link that leads nowhere"}, "folder": {fails: "is a folder: name a file in it"}, "folder/": {fails: "is a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := os.Lstat(in(name))
			var warned []string
			j := w.job(t, numbers(40), dir+"/"+name)
			j.Warn = func(text string) { warned = append(warned, text) }
			sum, err := j.Run(t.Context())
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
			} else {
				require.NoError(t, err)
				assert.Equal(t, 40, sum.Users)
			}
			if c.at != "" {
				assert.Len(t, answered(t, in(c.at)), 40)
				assert.Empty(t, warned)
			}
			if before != nil && c.at != "file" {
				after, err := os.Lstat(in(name))
				require.NoError(t, err)
				assert.True(t, os.SameFile(before, after), "it stays what it is")
			}
			if name == "null" {
				require.Len(t, warned, 1)
				assert.Contains(t, warned[0], "is not a file: it gets the answers as they come")
			}
		})
	}
	for _, kind := range []string{"*.partial", "*.checkpoints", "folder/*"} {
		left, err := filepath.Glob(in(kind))
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

// A named pipe gets each answer at once, and its reader may come late, or never.
func TestANamedPipe(t *testing.T) {
	w, pipe := newWorld(t), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	users, enter := io.Pipe()
	j := w.job(t, "", pipe)
	var err error
	j.Users, err = NewUsers(users, "", w.Registry())
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := j.Run(t.Context())
		ended <- err
	}()
	f, err := os.Open(pipe)
	require.NoError(t, err)
	_, err = io.WriteString(enter, "1\n")
	require.NoError(t, err)
	read := json.NewDecoder(f)
	var answer struct {
		ID string `json:"request_id"`
	}
	require.NoError(t, read.Decode(&answer), "the first answer, although there may be more users")
	assert.Equal(t, "1", answer.ID)
	_, err = io.WriteString(enter, "2\n")
	require.NoError(t, err)
	require.NoError(t, read.Decode(&answer))
	require.NoError(t, enter.Close())
	require.NoError(t, <-ended)
	assert.ErrorIs(t, read.Decode(&answer), io.EOF)
	require.NoError(t, f.Close())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = w.job(t, numbers(3), pipe).Run(ctx)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	f, err = os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // lets go of what waits for a reader
	require.NoError(t, err)
	require.NoError(t, f.Close())

	j = w.job(t, numbers(3), pipe)
	j.RetryDegraded = true
	_, err = j.Run(t.Context())
	assert.ErrorContains(t, err, "cannot be tried again in their place")
}

// A row that cannot be read fails its user alone, and the file of failures has its text.
func TestRowsThatAreBroken(t *testing.T) {
	long := strings.Repeat("x", lineBytesMost+5)
	for name, c := range map[string]struct {
		in     string
		form   Form
		users  []string
		broken []string // errors
	}{
		"a field too many":        {"user_id,country\n1,x\n2,x,y\n3,z\n", CSV, []string{"1", "3"}, []string{"users, line 3: wrong number of fields"}},
		"a field too few":         {"user_id,country\n1\n\n2,x", CSV, []string{"2"}, []string{"users, line 2: wrong number of fields"}},
		"a quote in a field":      {"user_id,country\n1,x\"y\n2,z\n3,\"a\nb\"\n4,z\n", CSV, []string{"2", "4"}, []string{`users, line 2: bare " in non-quoted-field`, `users, line 4: extraneous or missing " in quoted-field; a row is one line`, `users, line 5: `}},
		"a quote without its end": {"user_id,country\n1,\"x\n2,z\n3,z\n", CSV, []string{"2", "3"}, []string{`users, line 2: extraneous or missing " in quoted-field`}},
		"two of them":             {"user_id,country\n1,\"x\n2,z\n3,\"z\n4,y\n", CSV, []string{"2", "4"}, []string{`users, line 2: extraneous or missing " in quoted-field`, `users, line 4: extraneous or missing " in quoted-field`}},
		"a long row":              {"user_id,country\n1," + long + "\n2,x\n", CSV, []string{"2"}, []string{"users, line 2: longer than 1048576 bytes"}},
		"a long row in quotes":    {"user_id,country\n1,\"\n9," + long + "\n2,x\n", CSV, []string{"2"}, []string{`users, line 2: extraneous or missing " in quoted-field`, "users, line 3: longer than 1048576 bytes"}},
		"a long line":             {"1\n" + long + "\n2\n", Lines, []string{"1", "2"}, []string{"users, line 2: longer than 1048576 bytes"}},
		"a long last line":        {"1\n" + long, Lines, []string{"1"}, []string{"users, line 2: longer than 1048576 bytes"}},
		"no object":               {"{\"user_id\": 1}\n[1]\n\n7\n{\"user_id\": 2}\n", "", []string{"1", "2"}, []string{"users, line 2: a request begins with a brace", "users, line 4: a request begins with a brace"}},
		"no JSON":                 {"{\"user_id\": 1}\n{\"user_id\": \n{\"user_id\": 2}\n", "", []string{"1", "2"}, []string{"users, line 2: "}},
		"no id":                   {"1\n0\n-1\n2\n", Lines, []string{"1", "2"}, []string{"users, line 2: ", "users, line 3: "}},
		"a mark, and lines":       {"\ufeff1\n2\n", "", []string{"1", "2"}, nil},
		"a mark, and requests":    {"\ufeff{\"user_id\": 1}\n", "", []string{"1"}, nil},
		"a mark, and a CSV":       {"\ufeffuser_id\n1\n", CSV, []string{"1"}, nil},
		"a mark, and their form":  {"\ufeff{\"user_id\": 1}\n{\"user_id\": 2}", JSONL, []string{"1", "2"}, nil},
		"a mark alone in a line":  {"\ufeff\r\n1\n", "", []string{"1"}, nil},
		"half a mark":             {"\xef\xbb1\n2\n", "", []string{"2"}, []string{"users, line 1: "}},
		"a late mark":             {"1\n\ufeff2\n", "", []string{"1"}, []string{"users, line 2: "}},
	} {
		t.Run(name, func(t *testing.T) {
			w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
			u, err := NewUsers(strings.NewReader(c.in), c.form, w.Registry())
			require.NoError(t, err)
			r := &running{Job: &Job{Engine: w.Engine}, users: u}
			r.Shards = 1
			var users, broken []string
			for {
				doc, q, refused, err := r.next()
				if err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
				if refused == nil {
					users = append(users, userOf(&q))
					continue
				}
				broken = append(broken, refused.Error())
				require.LessOrEqual(t, len(broken), 9, "%v", broken)
				again, err := NewUsers(strings.NewReader(string(doc)+"\n"), "", w.Registry())
				require.NoError(t, err)
				r := &running{Job: r.Job, users: again}
				_, _, refused, err = r.next()
				require.NoError(t, err)
				assert.Error(t, refused, "the document fails again, alone in a file: %s", doc)
			}
			assert.Equal(t, c.users, users)
			require.Len(t, broken, len(c.broken))
			for i, want := range c.broken {
				assert.True(t, strings.HasPrefix(broken[i], want), broken[i])
			}

			j := w.job(t, "", out)
			j.Users, err = NewUsers(strings.NewReader(c.in), c.form, w.Registry())
			require.NoError(t, err)
			sum, err := j.Run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, len(broken), sum.Failed)
			assert.Equal(t, c.users, answered(t, out))
		})
	}
}

// A request that is wrong, although it has a sound user, does not run.
func TestARefusedRequestDoesNotRun(t *testing.T) {
	w, out := newWorld(t), filepath.Join(t.TempDir(), "answers.jsonl")
	sum, err := w.job(t, "{\"user_id\": 1, \"context\": 5}\n", out).Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, sum.Failed)
	assert.Zero(t, w.ran.Load())
}

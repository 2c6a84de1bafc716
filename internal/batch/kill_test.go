package batch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How a job ends at a change of a file.
const (
	killed   = iota // the process, behind the change, which is before the next one
	killTorn        // the process, when half of a write is made
	powerCut        // behind the change: only what was synced stays
	diskFull        // the write or the sync fails, and all writes after it
	killWays
)

// nonce matches what differs in each answer.
var nonce = regexp.MustCompile(`"engine_request_id":"[^"]*"`)

var errKilled = errors.New("killed")

// A fault is the disk of a job that ends at a change. It knows what a power cut would leave. One goroutine, which is that of the job.
type fault struct {
	t       *testing.T
	dir     string
	at, way int
	changes []string // so far
	ended   bool
	names   map[string]uint64 // inodes that survive, by their names
	content map[uint64][]byte // what survives of them
}

func newFault(t *testing.T, dir string, at, way int) *fault {
	f := &fault{t: t, dir: dir, at: at, way: way, content: make(map[uint64][]byte)}
	f.syncFolder()
	for path := range f.names {
		f.syncFile(path)
	}
	return f
}

func inode(t *testing.T, path string) uint64 {
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

func (f *fault) syncFolder() {
	paths, err := filepath.Glob(filepath.Join(f.dir, "*"))
	require.NoError(f.t, err)
	f.names = make(map[string]uint64)
	for _, path := range paths {
		f.names[path] = inode(f.t, path)
	}
}

func (f *fault) syncFile(path string) {
	text, err := os.ReadFile(path)
	require.NoError(f.t, err)
	f.content[inode(f.t, path)] = text
}

// cutPower leaves what was synced.
func (f *fault) cutPower() {
	names := f.names
	f.syncFolder()
	for path := range f.names {
		require.NoError(f.t, os.Remove(path))
	}
	for path, inode := range names {
		require.NoError(f.t, os.WriteFile(path, f.content[inode], 0o600))
	}
}

func (f *fault) step(change, path string, do func() error) error {
	f.changes = append(f.changes, change)
	here := len(f.changes) == f.at
	switch {
	case f.ended && f.way == diskFull && change != "write":
	case f.ended && f.way == diskFull, here && f.way == diskFull:
		f.ended = true
		return &os.PathError{Op: change, Path: path, Err: syscall.ENOSPC}
	case f.ended:
		return errKilled
	}
	before := int64(0)
	if info, err := os.Stat(path); err == nil {
		before = info.Size()
	}
	if change != "sync" {
		require.NoError(f.t, do())
	} else if path == f.dir {
		f.syncFolder()
	} else {
		f.syncFile(path)
	}
	if !here {
		return nil
	}
	f.ended = true
	switch f.way {
	case killTorn:
		info, err := os.Stat(path)
		require.NoError(f.t, err)
		require.NoError(f.t, os.Truncate(path, (before+info.Size())/2))
	case powerCut:
		f.cutPower()
	}
	return errKilled
}

// outcomeOf is what a job has left: by the names of its files.
func outcomeOf(t *testing.T, dir string) map[string]string {
	files := make(map[string]string)
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		files[filepath.Base(path)] = nonce.ReplaceAllString(string(text), "")
	}
	return files
}

// TestAJobThatIsKilledAtEachChange ends a job behind each write, sync, cut, rename and removal, which is before the next one. It ends it with half of a
// write, with a power cut that leaves only what was synced, and with a full disk, too. The same job then gives what it gives without all that.
func TestAJobThatIsKilledAtEachChange(t *testing.T) {
	var keys []string
	for user := range killUsers {
		keys = append(keys, fmt.Sprint("user:", user+1))
	}
	redis := keyed(t, keys...)
	for name, change := range map[string]func(w *world, j *Job, dir string){
		"answers": func(*world, *Job, string) {},
		"failures": func(w *world, _ *Job, dir string) {
			w.fails.Store(7)
		},
		"a former output": func(_ *world, _ *Job, dir string) {
			if _, err := os.Stat(filepath.Join(dir, "answers.jsonl.checkpoints")); errors.Is(err, os.ErrNotExist) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "answers.jsonl"), []byte("x"), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "answers.failed.jsonl"), []byte("x"), 0o600))
			}
		},
		"retries": func(w *world, j *Job, _ string) {
			w.flaky.Store(3)
			j.RetryDegraded = true
		},
		"a scan": func(_ *world, j *Job, _ string) {
			var err error
			j.Scan, err = NewScan(redis.Addr(), "user:{user}", j.Engine)
			require.NoError(t, err)
			j.Users = nil
		},
		"lists": func(w *world, j *Job, dir string) {
			w.fails.Store(7)
			j.Lists, j.Out = &Lists{Redis: redis.Addr(), Key: "home", Version: int64(len(dir))}, "" // each folder another one
			j.Bounds = &NoBounds
			j.Checkpoints, j.Failed = filepath.Join(dir, "home.checkpoints"), filepath.Join(dir, "home.failed.jsonl")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run := func(dir string, at, way int) (Summary, *fault, error) {
				j := w.job(t, numbers(killUsers), filepath.Join(dir, "answers.jsonl"))
				change(w, j, dir)
				f := newFault(t, dir, at, way)
				j.disk.step = f.step
				sum, err := j.Run(t.Context())
				return sum, f, err
			}
			dir := t.TempDir()
			sum, f, err := run(dir, 0, 0)
			require.NoError(t, err)
			require.Equal(t, killUsers, sum.Users)
			want := outcomeOf(t, dir)
			if name != "lists" {
				assert.Len(t, answered(t, filepath.Join(dir, "answers.jsonl")), killUsers-sum.Failed)
			}
			t.Logf("%d changes", len(f.changes))
			for at, change := range f.changes {
				for way := range killWays {
					if way == killTorn && change != "write" || way == diskFull && change != "write" && change != "sync" {
						continue
					}
					dir := t.TempDir()
					w.seen.Clear()
					_, f, err := run(dir, at+1, way)
					require.True(t, f.ended)
					require.Error(t, err)
					again, _, err := run(dir, 0, 0)
					require.NoError(t, err, "change %d, way %d", at+1, way)
					require.Equal(t, want, outcomeOf(t, dir), "change %d, way %d", at+1, way)
					require.Equal(t, sum.Users, again.Users)
					require.Equal(t, sum.Errors, again.Errors)
					if name == "lists" {
						require.True(t, again.Current)
						keys := ask(t, redis.Addr(), "KEYS", fmt.Sprintf("home:%d:*", again.Version))
						require.Len(t, keys, killUsers-sum.Failed)
					}
				}
			}
		})
	}
}

const killUsers = 25

// killEnv asks for a job that kills its process: "change output".
const killEnv = "RANKD_BATCH_KILL"

// runToTheKill runs a job that kills its process at a change.
func runToTheKill() {
	words := strings.SplitN(os.Getenv(killEnv), " ", 2)
	at, _ := strconv.Atoi(words[0])
	w, err := openWorld("")
	if err != nil {
		log.Fatal(err)
	}
	users, err := NewUsers(strings.NewReader(numbers(killUsers)), "", w.Registry())
	if err != nil {
		log.Fatal(err)
	}
	w.fails.Store(7)
	changes := 0
	j := &Job{Engine: w.Engine, Users: users, InFlight: 4, CheckpointUsers: 10, Out: words[1], disk: disk{step: func(_, _ string, do func() error) error {
		err := do()
		if changes++; changes == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return err
	}}}
	if _, err := j.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	os.Exit(0)
}

var killEvery = flag.Int("kill_every", 3, "TestAProcessThatIsKilled kills at each change of this number")

// TestAProcessThatIsKilled kills a process by SIGKILL behind changes. The same job in another process then has each user once, in order.
func TestAProcessThatIsKilled(t *testing.T) {
	for at := 1; ; at += *killEvery {
		out := filepath.Join(t.TempDir(), "answers.jsonl")
		run := func(at int) error {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", killEnv, at, out))
			cmd.Stderr = os.Stderr
			return cmd.Run()
		}
		err := run(at)
		if err == nil {
			assert.Greater(t, at, 20)
			return
		}
		require.ErrorContains(t, err, "killed")
		require.NoError(t, run(0))
		left := outcomeOf(t, filepath.Dir(out))
		require.Len(t, left, 2)
		require.Len(t, answered(t, out), killUsers-killUsers/7)
		require.Equal(t, 3, strings.Count(left["answers.failed.jsonl"], "\n"))
	}
}

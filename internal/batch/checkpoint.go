package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A checkpoint says how far a job has come. All that it counts is on the disk, or in Redis, before the checkpoint is.
type checkpoint struct {
	State   state             `json:"state"`
	Process string            `json:"process"` // that wrote it
	ID      string            `json:"job"`     // of the job: the process that began it
	Asked   map[string]string `json:"asked"`   // what answers depend on, by name

	Done   int    `json:"done"`   // users, in their order
	Digest uint64 `json:"digest"` // of their documents
	// Bytes of the answers, of the users that failed, and of those to be tried again.
	AnswerBytes int64   `json:"answer_bytes"`
	FailedBytes int64   `json:"failed_bytes"`
	RetryBytes  int64   `json:"retry_bytes,omitempty"`
	Source      *source `json:"source,omitempty"` // of the users; nil: not a file
	Summary     Summary `json:"summary"`
}

// source is a file of users as it was when the job opened it. Immutable.
type source struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
}

func (s *source) String() string {
	return fmt.Sprintf("%d bytes of %s", s.Size, s.ModTime.Format(time.RFC3339Nano))
}

// A state is what a job does next.
type state string

// The states, in order.
const (
	stateNew     state = "new"     // begin the lists in Redis
	stateRanking state = "ranking" // rank users
	stateRetry   state = "retry"   // try degraded users again
	stateWhole   state = "whole"   // give the output its name
)

// checkpoints is the file with a job's last checkpoint. The process that holds its lock works on the output. One goroutine.
type checkpoints struct {
	disk    disk
	path    string
	file    *os.File // has the lock
	process string
	last    checkpoint // without a State: there is none
	damaged error      // why there is none
}

// openCheckpoints locks the file, and reads it.
func openCheckpoints(d disk, path string) (*checkpoints, error) {
	host, _ := os.Hostname() // It is only shown.
	c := &checkpoints{disk: d, path: path, process: fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339Nano))}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, everybodyReads)
		if err != nil {
			return nil, err
		}
		locked := lock(f)
		text, err := io.ReadAll(f)
		last, whole := readCheckpoint(text)
		c.last = last
		own, broken := f.Stat()
		switch there, gone := os.Stat(path); {
		case err != nil || broken != nil:
			err = cmp.Or(err, broken)
		case gone != nil || !os.SameFile(own, there): // Another process has written a checkpoint meanwhile, or ended.
			_ = f.Close()
			continue
		case errors.Is(locked, syscall.EWOULDBLOCK):
			err = fmt.Errorf("%s works on this output: see %s", cmp.Or(c.last.Process, "another process"), path)
		case locked != nil:
			err = fmt.Errorf("lock %s: %w", path, locked)
		case !whole && len(text) > 0:
			c.damaged = fmt.Errorf("%s has something other than a checkpoint; --restart ranks all again", path)
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		c.file = f
		return c, nil
	}
}

// readCheckpoint reads a checkpoint, or says that the text is something else.
func readCheckpoint(text []byte) (one checkpoint, ok bool) {
	if json.Unmarshal(text, &one) != nil || one.State == "" {
		return checkpoint{}, false
	}
	return one, true
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// refuse returns an error if the job under way has been asked for something else.
func (c *checkpoints) refuse(asked map[string]string) error {
	var differences []string
	all := maps.Clone(asked)
	maps.Copy(all, c.last.Asked)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		if was, now := c.last.Asked[what], asked[what]; was != now {
			differences = append(differences, fmt.Sprintf("%s: %s, now %s", what, cmp.Or(was, "none"), cmp.Or(now, "none")))
		}
	}
	if differences == nil {
		return nil
	}
	return c.changed(strings.Join(differences, "; "))
}

// changed returns the error of a job that cannot go on.
func (c *checkpoints) changed(what string) error {
	return fmt.Errorf("%s is of a batch that cannot go on, since something has changed: %s. --restart ranks all again", c.path, what)
}

// add replaces the checkpoint. It returns once the new one is on the disk.
func (c *checkpoints) add(one checkpoint) error {
	one.Process = c.process
	doc, err := json.Marshal(one)
	if err != nil {
		return err
	}
	o, err := openOutput(c.disk, c.path, 0)
	if err != nil {
		return err
	}
	if err = lock(o.file); err == nil {
		err = o.write(append(doc, '\n'))
	}
	if err == nil {
		err = o.keep()
	}
	if err != nil {
		o.close()
		return err
	}
	_ = c.file.Close()
	c.file, c.last = o.file, one
	return nil
}

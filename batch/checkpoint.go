package batch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
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
	Process string            `json:"process"`         // that wrote it
	Asked   map[string]string `json:"asked,omitempty"` // by what it depends on; in the first checkpoint only

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

// checkpoints is the file with a job's checkpoints, one a line. The process that holds its lock works on the output. One goroutine.
type checkpoints struct {
	disk    disk
	file    *os.File
	process string
	asked   map[string]string
	first   checkpoint // its process names the job
	last    checkpoint
	marks   []mark // of all checkpoints with users
	damaged error  // what is wrong with one of them
}

// A mark is where a checkpoint was. Immutable.
type mark struct {
	users  int
	digest uint64
}

// openCheckpoints locks the file, and reads what it has. A line that a crash has torn is cut off.
func openCheckpoints(d disk, path string) (*checkpoints, error) {
	host, _ := os.Hostname() // It is only shown.
	c := &checkpoints{disk: d, process: fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339Nano))}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, everybodyReads)
		if err != nil {
			return nil, err
		}
		c.file = f
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		locked := err == nil
		whole, damaged := int64(0), error(nil)
		if locked || errors.Is(err, syscall.EWOULDBLOCK) {
			whole, damaged, err = c.read()
		}
		switch there, gone := os.Stat(path); {
		case err == nil && !locked:
			err = fmt.Errorf("%s works on this output: see %s", cmp.Or(c.last.Process, "another process"), path)
		case err == nil && (gone != nil || !isFile(f, there)): // The last job has ended meanwhile.
			_ = f.Close()
			continue
		case err == nil && damaged != nil:
			c.damaged = fmt.Errorf("%s: %w; --restart ranks all again", path, damaged)
		case err == nil:
			err = c.cut(whole)
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		return c, nil
	}
}

// isFile reports whether info is of an open file.
func isFile(f *os.File, info os.FileInfo) bool {
	own, err := f.Stat()
	return err == nil && os.SameFile(own, info)
}

// read reads the checkpoints. It returns how many bytes they have, and what is wrong with one of them.
func (c *checkpoints) read() (whole int64, damaged, err error) {
	text, err := io.ReadAll(c.file)
	c.first, c.last, c.marks = checkpoint{}, checkpoint{}, nil
	for line := range bytes.Lines(text) {
		var one checkpoint
		sum, doc, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if sum != sumOf([]byte(doc)) || line[len(line)-1] != '\n' || json.Unmarshal([]byte(doc), &one) != nil {
			if damaged = fmt.Errorf("byte %d: this is not a checkpoint", whole); whole+int64(len(line)) == int64(len(text)) {
				damaged = nil // A crash has torn it.
			}
			return whole, damaged, err
		}
		if c.first.Process == "" {
			c.first = one
		}
		c.last = one
		if n := len(c.marks); one.Done > 0 && (n == 0 || c.marks[n-1].users < one.Done) {
			c.marks = append(c.marks, mark{one.Done, one.Digest})
		}
		whole += int64(len(line))
	}
	return whole, nil, err
}

// sumOf returns the checksum of a checkpoint.
func sumOf(doc []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(doc) // A hash has no errors.
	return fmt.Sprintf("%016x", sum.Sum64())
}

// cut removes what is behind some bytes.
func (c *checkpoints) cut(bytes int64) error {
	size, err := c.file.Seek(0, io.SeekEnd)
	if err == nil && size > bytes {
		err = c.disk.do("cut", c.file.Name(), func() error { return c.file.Truncate(bytes) })
	}
	if err == nil {
		_, err = c.file.Seek(bytes, io.SeekStart)
	}
	return err
}

// begun reports whether there is a job that has not ended.
func (c *checkpoints) begun() bool { return c.first.Process != "" }

// refuse returns what the job under way has been asked for, and this one has not.
func (c *checkpoints) refuse() error {
	var differences []string
	for _, what := range slices.Sorted(maps.Keys(c.asked)) {
		if was := c.first.Asked[what]; was != c.asked[what] {
			differences = append(differences, fmt.Sprintf("%s: %s, now %s", what, cmp.Or(was, "none"), cmp.Or(c.asked[what], "none")))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(c.first.Asked)) {
		if _, now := c.asked[what]; !now {
			differences = append(differences, fmt.Sprintf("%s: %s, now none", what, c.first.Asked[what]))
		}
	}
	if differences == nil {
		return nil
	}
	return c.changed(strings.Join(differences, "; "))
}

// changed returns the error of a job that cannot go on.
func (c *checkpoints) changed(what string) error {
	return fmt.Errorf("%s is of a batch that cannot go on, since something has changed: %s. --restart ranks all again", c.file.Name(), what)
}

// begin removes all checkpoints, and writes the first one.
func (c *checkpoints) begin(first checkpoint) error {
	if err := c.cut(0); err != nil {
		return err
	}
	c.first, c.last, c.marks = checkpoint{}, checkpoint{}, nil
	first.Asked = c.asked
	if err := c.add(first); err != nil {
		return err
	}
	c.first = c.last
	return c.disk.syncFolder(c.file.Name())
}

// add writes a checkpoint. It returns once that is on the disk.
func (c *checkpoints) add(one checkpoint) error {
	one.Process = c.process
	doc, err := json.Marshal(one)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, "%s %s\n", sumOf(doc), doc)
	if err := c.disk.do("write", c.file.Name(), func() error { _, err := c.file.Write(line); return err }); err != nil {
		return err
	}
	c.last = one
	return c.disk.do("sync", c.file.Name(), c.file.Sync)
}

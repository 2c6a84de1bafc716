package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

const (
	scanCount   = 1000    // keys that one SCAN looks at
	scanTries   = 5       // of a cluster whose slots move
	sortedUsers = 1 << 18 // are sorted in memory at once
)

// A Scan finds users by keys of a Redis. Immutable.
type Scan struct {
	redis         string
	text          string // as it was given
	before, after string // {user}
}

// NewScan returns a scan for the keys of a template, such as user:{user}, in a Redis or a Redis Cluster. registry.ParseServer reads the text that names
// it. A template is one as plans have it, whose only mark is {user}.
func NewScan(redis, template string, e *rankd.Engine) (*Scan, error) {
	t, err := plan.ParseKeyTemplate(template, e.Registry(), false)
	if err != nil {
		return nil, fmt.Errorf("the key of the users %w", err)
	}
	s, users := &Scan{redis: redis, text: template}, 0
	text := &s.before
	for _, part := range t.Before { // The others are there only with {id}.
		switch {
		case part.User:
			users++
			text = &s.after
		case part.Param != nil:
			users = 2
		default:
			*text = part.Text
		}
	}
	if users != 1 || t.PerRow() {
		return nil, fmt.Errorf("the key of the users has the mark {user} once, and no other, such as user:{user}: %q", template)
	}
	return s, nil
}

// glob returns the pattern for SCAN.
func (s *Scan) glob() string { return globText(s.before) + "*" + globText(s.after) }

// globText returns the pattern that matches only the text.
func globText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// find writes the users to a file, unless the file is there: then it reports false. The file has each user once. Shorter ids come
// first, and ids of one length are in the order of their bytes, as numbers are.
func (s *Scan) find(ctx context.Context, d disk, path string, e *rankd.Engine, asked func(found int)) (skipped int, found bool, err error) {
	if _, err := os.Stat(path); err == nil {
		return 0, false, nil
	}
	list := sortedList{disk: d, path: path}
	defer list.drop()
	for range scanTries {
		skipped = 0
		err = devredis.EachMaster(ctx, s.redis, func(c *blocking.Client) error {
			return devredis.Scan(c, s.glob(), scanCount, func(keys resp.Reply) (bool, error) {
				for key := range keys.All() {
					doc, ok := s.user(key.Bytes(), e)
					if !ok {
						skipped++
					} else if err := list.add(doc); err != nil {
						return false, err
					}
				}
				asked(list.added)
				return ctx.Err() == nil, context.Cause(ctx)
			})
		})
		if !errors.Is(err, devredis.ErrSlotsMove) {
			break
		}
	}
	if err == nil {
		err = list.write()
	}
	return skipped, true, err
}

// user returns the document of the user of a key. It reports false if the text is not a user's id.
func (s *Scan) user(key []byte, e *rankd.Engine) (doc []byte, ok bool) {
	if len(key) <= len(s.before)+len(s.after) || !utf8.Valid(key) {
		return nil, false
	}
	doc = appendUser(nil, string(key[len(s.before):len(key)-len(s.after)]))
	q, err := e.Intake().Parse(doc, request.Given{})
	if err != nil {
		return nil, false
	}
	return appendUser(doc[:0], userOf(&q)), true // 007 is user 7.
}

// A sortedList writes many lines to a file, each once and in order. It keeps some of them in memory, and the others in sorted files, the runs. One goroutine.
type sortedList struct {
	disk  disk
	path  string
	lines [][]byte
	runs  []*os.File // without a name: they go with the process
	added int        // with duplicates
}

func byLength(a, b []byte) int { return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b)) }

func (l *sortedList) add(line []byte) error {
	l.lines = append(l.lines, line)
	l.added++
	if len(l.lines) < sortedUsers {
		return nil
	}
	return l.spill()
}

// sorted returns the lines in memory.
func (l *sortedList) sorted() [][]byte {
	slices.SortFunc(l.lines, byLength)
	return slices.CompactFunc(l.lines, bytes.Equal)
}

// spill writes a run.
func (l *sortedList) spill() error {
	f, err := os.CreateTemp(filepath.Dir(l.path), ".users.*")
	if err != nil {
		return err
	}
	l.runs = append(l.runs, f)
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for _, line := range l.sorted() {
		_, _ = w.Write(line) // Flush has the error.
		_ = w.WriteByte('\n')
	}
	clear(l.lines)
	l.lines = l.lines[:0]
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// write writes the list.
func (l *sortedList) write() error {
	out, err := openOutput(l.disk, l.path, 0)
	if err != nil {
		return err
	}
	defer out.close()
	merge := mergedRuns{{lines: l.sorted()}}
	for _, f := range l.runs {
		merge = append(merge, &run{rest: bufio.NewScanner(f)})
	}
	for i := 0; i < len(merge); {
		more, err := merge[i].next()
		switch {
		case err != nil:
			return err
		case more:
			i++
		default:
			merge = slices.Delete(merge, i, i+1)
		}
	}
	heap.Init(&merge)
	var last []byte
	for len(merge) > 0 {
		first := merge[0]
		if !bytes.Equal(first.line, last) {
			last = append(last[:0], first.line...)
			if err := out.write(append(last, '\n')); err != nil {
				return err
			}
		}
		more, err := first.next()
		switch {
		case err != nil:
			return err
		case more:
			heap.Fix(&merge, 0)
		default:
			heap.Pop(&merge)
		}
	}
	return out.keep()
}

// drop removes the runs.
func (l *sortedList) drop() {
	for _, f := range l.runs {
		_ = f.Close()
	}
}

// A run is a sequence of sorted lines, in memory or in a file. One goroutine.
type run struct {
	line  []byte
	lines [][]byte
	rest  *bufio.Scanner // nil: none
}

func (r *run) next() (more bool, err error) {
	switch {
	case len(r.lines) > 0:
		r.line, r.lines = r.lines[0], r.lines[1:]
		return true, nil
	case r.rest != nil && r.rest.Scan():
		r.line = r.rest.Bytes()
		return true, nil
	case r.rest != nil:
		return false, r.rest.Err()
	}
	return false, nil
}

// mergedRuns is a heap of runs by their lines. One goroutine.
type mergedRuns []*run

// Len implements heap.Interface.
func (m mergedRuns) Len() int { return len(m) }

// Less implements heap.Interface.
func (m mergedRuns) Less(i, j int) bool { return byLength(m[i].line, m[j].line) < 0 }

// Swap implements heap.Interface.
func (m mergedRuns) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface. Nobody calls it.
func (m *mergedRuns) Push(r any) { *m = append(*m, r.(*run)) }

// Pop implements heap.Interface.
func (m *mergedRuns) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

package fileio

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"math"
	"os"
	"slices"
)

const (
	// runsMax is how many runs of a level become one of the next: each is an open file with a buffer.
	runsMax = 64
	// recordExtra is about what a record takes in memory besides its bytes.
	recordExtra = 48
)

// A Sorter sorts records of any bytes but line ends. It keeps some of them in memory, and the others in sorted runs: files without a
// name, which go with the process. One goroutine.
type Sorter struct {
	folder  string
	max     int
	runsMax int
	compare func(a, b []byte) int
	records [][]byte
	size    int
	runs    []*sortedRun // their levels descend
}

// NewSorter returns a Sorter that keeps some max bytes in memory, and files in folder. Close removes them.
func NewSorter(folder string, max int, compare func(a, b []byte) int) *Sorter {
	return &Sorter{folder: folder, max: max, runsMax: runsMax, compare: compare}
}

// Add takes a record, of which it keeps a copy.
func (s *Sorter) Add(record []byte) error {
	s.records = append(s.records, bytes.Clone(record))
	if s.size += len(record) + recordExtra; s.size < s.max {
		return nil
	}
	err := s.write(0, s.memory())
	for n := len(s.runs) - s.runsMax; err == nil && n >= 0 && s.runs[n].level == s.runs[len(s.runs)-1].level; n = len(s.runs) - s.runsMax {
		full := slices.Clone(s.runs[n:])
		s.runs = s.runs[:n]
		err = s.write(full[0].level+1, full...)
	}
	return err
}

// Each calls do for each record in order, equal ones among them, and ends the use of s but for Close. A record is valid until do returns.
func (s *Sorter) Each(do func(record []byte) error) error {
	return s.merge(append(s.runs, s.memory()), do)
}

// Close removes the files.
func (s *Sorter) Close() {
	for _, r := range s.runs {
		_ = r.file.Close() // It may be closed.
	}
}

// memory makes a run of what is in memory.
func (s *Sorter) memory() *sortedRun {
	slices.SortFunc(s.records, s.compare)
	r := &sortedRun{records: s.records}
	s.records, s.size = nil, 0
	return r
}

// write makes a file of these runs.
func (s *Sorter) write(level int, runs ...*sortedRun) error {
	f, err := os.CreateTemp(s.folder, ".sorted-")
	if err != nil {
		return err
	}
	s.runs = append(s.runs, &sortedRun{level: level, file: f, lines: NewLineReader(f, math.MaxInt)})
	out := bufio.NewWriterSize(f, 64<<10)
	err = cmp.Or(os.Remove(f.Name()), s.merge(runs, func(record []byte) error {
		_, _ = out.Write(record) // WriteByte has its error, too.
		return out.WriteByte('\n')
	}), out.Flush())
	_, again := f.Seek(0, io.SeekStart)
	return cmp.Or(err, again)
}

// merge calls do for the records of some runs in order, and closes their files.
func (s *Sorter) merge(runs []*sortedRun, do func(record []byte) error) error {
	var open []*sortedRun // by their first records
	for one := make([]*sortedRun, 1); ; runs = one {
		for _, r := range runs {
			more, err := r.next()
			if err != nil {
				return err
			}
			if more {
				at, _ := slices.BinarySearchFunc(open, r, func(a, b *sortedRun) int { return s.compare(a.first, b.first) })
				open = slices.Insert(open, at, r)
			}
		}
		if len(open) == 0 {
			return nil
		}
		if err := do(open[0].first); err != nil {
			return err
		}
		one[0] = open[0]
		open = slices.Delete(open, 0, 1)
	}
}

// A sortedRun is a sequence of sorted records, in memory or in a file. One goroutine.
type sortedRun struct {
	level   int // how often its records were merged
	first   []byte
	records [][]byte // those behind first
	file    *os.File // nil: it is in memory
	lines   *LineReader
}

// next takes the next record as first, and reports whether there is one.
func (r *sortedRun) next() (more bool, err error) {
	if r.file != nil {
		r.first, _, err = r.lines.Next()
		if err == io.EOF {
			return false, r.file.Close()
		}
		return err == nil, err
	}
	if len(r.records) == 0 {
		return false, nil
	}
	r.first, r.records = r.records[0], r.records[1:]
	return true, nil
}

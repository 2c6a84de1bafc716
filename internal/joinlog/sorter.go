package joinlog

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// runsMax is how many runs are merged at once: each has an open file, and a buffer of runBuffer bytes.
const (
	runsMax   = 64
	runBuffer = 32 << 10
)

// recordExtra is about what a record takes in memory besides its bytes.
const recordExtra = 48

// sorter sorts records by their bytes. It keeps max bytes of them in memory, and the others in runs: files of folder.
type sorter struct {
	folder  string
	max     int
	records [][]byte
	size    int
	runs    []string
	spilled int // runs written so far
}

// add takes a record, of which it keeps a copy.
func (s *sorter) add(record []byte) error {
	s.records = append(s.records, bytes.Clone(record))
	if s.size += len(record) + recordExtra; s.size < s.max {
		return nil
	}
	return s.spill()
}

// spill writes what is in memory as a run.
func (s *sorter) spill() error {
	slices.SortFunc(s.records, bytes.Compare)
	records := s.records
	s.records, s.size = nil, 0
	return s.write(func(yield func([]byte) error) error {
		for _, r := range records {
			if err := yield(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// write adds a run with the records that all yields, in their order.
func (s *sorter) write(all func(yield func([]byte) error) error) (err error) {
	f, err := os.CreateTemp(s.folder, "run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s.runs = append(s.runs, f.Name())
	s.spilled++
	out := bufio.NewWriterSize(f, runBuffer)
	var size [binary.MaxVarintLen64]byte
	err = all(func(r []byte) error {
		_, err := out.Write(size[:binary.PutUvarint(size[:], uint64(len(r)))])
		if err == nil {
			_, err = out.Write(r)
		}
		return err
	})
	return errors.Join(err, out.Flush())
}

// each calls do for each record in order, and ends the use of s. A record is valid until do returns.
func (s *sorter) each(do func(record []byte) error) error {
	if len(s.runs) == 0 {
		slices.SortFunc(s.records, bytes.Compare)
		for _, r := range s.records {
			if err := do(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.records) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	for len(s.runs) > runsMax {
		first := s.runs[:runsMax]
		s.runs = s.runs[runsMax:]
		if err := s.write(func(yield func([]byte) error) error { return merge(first, yield) }); err != nil {
			return err
		}
	}
	return merge(s.runs, do)
}

// run reads one run.
type run struct {
	file   *os.File
	in     *bufio.Reader
	record []byte
}

// next reads the next record. The error is io.EOF at the end.
func (r *run) next() error {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	r.record = slices.Grow(r.record[:0], int(size))[:size]
	_, err = io.ReadFull(r.in, r.record)
	return err
}

// runs are a heap by their present records.
type runs []*run

func (h runs) Len() int           { return len(h) }
func (h runs) Less(i, j int) bool { return bytes.Compare(h[i].record, h[j].record) < 0 }
func (h runs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runs) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runs) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merge calls do for the records of sorted files in order, and removes the files.
func merge(files []string, do func(record []byte) error) (err error) {
	var open runs
	defer func() {
		for _, r := range open {
			err = errors.Join(err, r.file.Close())
		}
	}()
	take := func(r *run) error {
		switch err := r.next(); err {
		case nil:
			heap.Push(&open, r)
			return nil
		case io.EOF:
			return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
		default:
			return errors.Join(err, r.file.Close())
		}
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := take(&run{file: f, in: bufio.NewReaderSize(f, runBuffer)}); err != nil {
			return err
		}
	}
	for len(open) > 0 {
		r := heap.Pop(&open).(*run)
		if err := do(r.record); err != nil {
			return errors.Join(err, r.file.Close())
		}
		if err := take(r); err != nil {
			return err
		}
	}
	return nil
}

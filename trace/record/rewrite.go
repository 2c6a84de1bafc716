package record

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// User returns the id of the user who asked, as a text: the digits of an integer.
func (r *Request) User() string {
	if r.UserIDText != "" {
		return r.UserIDText
	}
	return strconv.FormatInt(r.UserID, 10)
}

// A rewriter copies requests of files to another file. One goroutine.
type rewriter struct {
	to     io.Writer
	change func(*Header) // of the headers on their way; nil: none
	w      *Writer       // nil before the first header
	header *Header       // of the file that is read, as w has it
}

// copy copies those requests of a file for which keep is true. n counts them from 0.
func (c *rewriter) copy(r *Reader, keep func(n int, q *Request) bool) error {
	c.header = nil
	for n := 0; ; n++ {
		q, err := r.Next()
		torn := (*Torn)(nil)
		switch end := err == io.EOF || errors.As(err, &torn); {
		case end && c.w == nil:
			return c.setHeader(r.first)
		case end:
			return nil
		case err != nil:
			return err
		case !keep(n, q):
			continue
		}
		if h := r.Header(); h != c.header {
			if err := c.setHeader(h); err != nil {
				return err
			}
		}
		if err := c.w.Add(q, r); err != nil {
			return err
		}
	}
}

func (c *rewriter) setHeader(h *Header) (err error) {
	c.header = h
	changed := *h
	if c.change != nil {
		c.change(&changed)
	}
	if c.w != nil {
		return c.w.Header(changed)
	}
	c.w, err = NewWriter(c.to, changed)
	return err
}

// scan calls do for each request behind those that r has read, without what is a blob. The error is a *Torn if the file has no end.
func (r *Reader) scan(do func(q *Request)) error {
	for {
		q, err := r.next(false)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		do(q)
	}
}

// Purged says what Purge has done. A copy; any goroutine.
type Purged struct {
	Requests int   // that are gone
	Torn     *Torn // nil: the file had an end
}

// Purge removes the requests of a user from a file, and what only these name. The file is replaced as a whole, or stays as it is. A torn end
// goes, too. It does not look into what other users' requests got. A file that has expired is read nevertheless. The error matches
// syscall.EWOULDBLOCK if a process writes the file.
func Purge(path, user string, o ReadOptions) (done Purged, err error) {
	f, err := os.Open(path)
	if err != nil {
		return done, err
	}
	defer f.Close()
	if err := fileio.Lock(f); err != nil {
		return done, err
	}
	o.Now = time.Unix(0, 0)
	r, err := Open(path, o)
	if err != nil {
		return done, err
	}
	defer r.Close()
	err = r.scan(func(q *Request) {
		if q.User() == user {
			done.Requests++
		}
	})
	if err != nil && !errors.As(err, &done.Torn) {
		return Purged{}, err
	}
	if done.Requests == 0 && (done.Torn == nil || done.Torn.Bytes == 0) {
		return done, nil
	}
	return done, fileio.ReplaceBy(path, func(to *bufio.Writer) error {
		again, err := Open(path, o)
		if err != nil {
			return err
		}
		defer again.Close()
		c := rewriter{to: to}
		if err := c.copy(again, func(_ int, q *Request) bool { return q.User() != user }); err != nil {
			return err
		}
		return c.w.Close()
	})
}

// MergeOptions say how files become one. The zero value reads and writes what is not encrypted. Immutable.
type MergeOptions struct {
	Read ReadOptions
	// Recipients are those of the new file. Nil: those of the files, which must be the same.
	Recipients []string
	// Torn is called for a file without an end. Nil: that is an error.
	Torn func(path string, torn *Torn)
}

// Merged says what Merge has done. A copy; any goroutine.
type Merged struct {
	Requests int // of the new file
	Twice    int // requests that were there again
}

// Merge writes the requests of files to one file, in the order of the files. Each stays behind its own header, which has the share of users
// among whom it was recorded; all headers get the earliest expiry. Of requests with the same ID Merge keeps one that is not Marked, and of
// these one of the greatest share: with one salt, the users of a smaller share are among those of a greater one. So Merge refuses files with
// different salts if both have a share of the users only. It holds some 80 bytes for each request.
func Merge(to io.Writer, paths []string, o MergeOptions) (Merged, error) {
	m := merge{options: o, best: map[[16]byte]candidate{}}
	for i, path := range paths {
		if err := m.each(path, func(r *Reader) error { return m.look(i, r) }); err != nil {
			return Merged{}, err
		}
	}
	c := rewriter{to: to, change: func(h *Header) {
		if h.Expires = m.expires; o.Recipients != nil {
			h.Recipients = o.Recipients
		}
	}}
	m.options.Torn = func(string, *Torn) {} // It was called.
	for i, path := range paths {
		err := m.each(path, func(r *Reader) error {
			return c.copy(r, func(n int, q *Request) bool { b := m.best[q.ID]; return b.file == i && b.n == n })
		})
		if err != nil {
			return Merged{}, err
		}
	}
	if c.w == nil {
		return Merged{}, errors.New("no file has a header")
	}
	return Merged{len(m.best), m.twice}, c.w.Close()
}

// merge is a Merge under way.
type merge struct {
	options       MergeOptions
	best          map[[16]byte]candidate
	twice         int
	expires       time.Time
	first, shared *Header // of all; of those with a share of the users only
}

// A candidate is the request of an ID that a merge keeps.
type candidate struct {
	marked  bool
	share   float64
	file, n int
}

// each opens a file for do. The error names it.
func (m *merge) each(path string, do func(*Reader) error) error {
	r, err := Open(path, m.options.Read)
	if err == nil {
		err = errors.Join(do(r), r.Close())
	}
	if torn := (*Torn)(nil); errors.As(err, &torn) && m.options.Torn != nil {
		m.options.Torn(path, torn)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", errtext.Name(path), err)
	}
	return nil
}

// look decides which requests of a file the merge keeps, as far as that is known.
func (m *merge) look(file int, r *Reader) error {
	last := r.Header()
	refused := m.header(last)
	n := 0
	err := r.scan(func(q *Request) {
		if h := r.Header(); h != last {
			last, refused = h, cmp.Or(refused, m.header(h))
		}
		now := candidate{q.Marked, last.Sample, file, n}
		n++
		before, twice := m.best[q.ID]
		if twice {
			m.twice++
		}
		if !twice || before.marked && !now.marked || before.marked == now.marked && now.share > before.share {
			m.best[q.ID] = now
		}
	})
	return cmp.Or(refused, err)
}

// header returns an error if what stands behind h can't be in one file with what was before.
func (m *merge) header(h *Header) error {
	m.first = cmp.Or(m.first, h)
	if m.options.Recipients == nil && !h.sameRecipients(m.first) {
		return errors.New("the file is encrypted to others than a file before it: say to whom the new file is")
	}
	if !h.Expires.IsZero() && (m.expires.IsZero() || h.Expires.Before(m.expires)) {
		m.expires = h.Expires
	}
	if h.Sample == 0 || h.Sample == 1 {
		return nil
	}
	if m.shared = cmp.Or(m.shared, h); m.shared.Salt != h.Salt {
		return fmt.Errorf("the file has a share of the users by the salt %s, and a file before it by %s: such shares do not combine",
			errtext.Quote(h.Salt), errtext.Quote(m.shared.Salt))
	}
	return nil
}

package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Store knows the callers of a server. Any goroutine.
type Store struct {
	anyone *Caller // without a file; nil: a token is required
	path   string  // of the file
	table  atomic.Pointer[table]

	reloading sync.Mutex
	text      []byte // of the file, as last read; guarded by reloading
}

// Open reads a file of tokens. The error names the file, with a line for each problem.
func Open(path string) (*Store, error) {
	s := &Store{path: path}
	s.table.Store(&table{})
	if _, err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Anyone returns a store without tokens: everybody is c.
func Anyone(c *Caller) *Store {
	s := &Store{anyone: c}
	s.table.Store(&table{})
	return s
}

// Anonymous returns the caller who shows no token. It returns nil if a token is required.
func (s *Store) Anonymous() *Caller { return s.anyone }

// Lookup returns the caller with that token. It keeps nothing of the token. Its time depends only on the length of
// the token, and on bits of the digest, from which nobody can compute a token.
func (s *Store) Lookup(token []byte) (*Caller, bool) {
	digest := sha256.Sum256(token)
	return s.table.Load().find(&digest)
}

// Login returns the caller with that token if name is its name, or "default", which Redis clients send if they have
// no name.
func (s *Store) Login(name, token []byte) (*Caller, bool) {
	c, ok := s.Lookup(token)
	if !ok || string(name) != "default" && string(name) != c.name {
		return nil, false
	}
	return c, true
}

// Renew returns a caller with the rights that it has now. It costs one atomic load unless its entry
// has changed. It reports false if its token has been revoked.
func (s *Store) Renew(c *Caller) (*Caller, bool) {
	if !c.superseded.Load() {
		return c, true
	}
	return s.table.Load().find(&c.digest)
}

// Names returns the names of the callers with a token, sorted.
func (s *Store) Names() []string {
	var names []string
	for c := range maps.Values(*s.table.Load()) {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

// Reload reads the file again and reports whether it has changed. After an error the tokens stay as they were. A
// caller whose entry is the same stays the same Caller. Without a file Reload does nothing.
func (s *Store) Reload() (changed bool, err error) {
	if s.path == "" {
		return false, nil
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	text, err := readFile(s.path, othersWrite)
	if err != nil {
		return false, err
	}
	if s.text != nil && bytes.Equal(text, s.text) {
		return false, nil
	}
	callers, err := parse(text)
	if err != nil {
		return false, fileError(s.path, err)
	}
	before := *s.table.Load()
	after := make(table, len(callers))
	for _, c := range callers {
		if known, ok := before.find(&c.digest); ok {
			c.inflight = known.inflight
			if known.sameRights(c) {
				c = known
			}
		}
		after[key(&c.digest)] = c
	}
	s.text = text
	s.table.Store(&after)
	for k, c := range before { // after the new table is in place, so that Renew finds it
		if after[k] != c {
			c.superseded.Store(true)
		}
	}
	return true, nil
}

// table has the callers by a part of their digests.
type table map[uint64]*Caller

// key returns the part of a digest that a table is indexed by. parse refuses files in which two digests share it.
func key(digest *[sha256.Size]byte) uint64 { return binary.LittleEndian.Uint64(digest[:]) }

// nobody has a digest that no token has.
var nobody Caller

// find returns the caller with that digest. It compares whole digests in constant time, one for each call.
func (t table) find(digest *[sha256.Size]byte) (*Caller, bool) {
	c, found := t[key(digest)]
	if !found {
		c = &nobody
	}
	if subtle.ConstantTimeCompare(c.digest[:], digest[:]) != 1 {
		return nil, false
	}
	return c, true
}

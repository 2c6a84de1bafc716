package registry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/fileio"
)

// LockFile is the name of the file with the ids of columns and parameters in the short form.
const LockFile = "registry.lock"

// lockHead begins each lock file.
const lockHead = "# The ids of columns and parameters in artifacts. rankd registry lock writes this file. Keep it under version control.\n" +
	"# No line goes, not even with its column: an id is never given twice.\n"

// lockFile is what the file has: ids by name. One goroutine.
type lockFile struct {
	Keys   map[string]int64
	Params map[string]int64
	added  []string // the names that have got new ids
}

// Lock returns the text of the LockFile for the tables in a folder. It has the ids of the present lock file, those in
// the tables, and new ones for columns and parameters without an id, whose names Lock returns, too. An id that was
// ever in the file is never given again. The error joins all problems of keys.toml, params.toml and the lock file, as
// that of Load does.
func Lock(tables fs.FS) (text []byte, added []string, err error) {
	l := loader{tables: tables, locking: true}
	l.readLock()
	var r Registry
	l.keys(&r)
	l.params(&r)
	if err := l.failure(); err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	out.WriteString(lockHead)
	for _, part := range []struct {
		name string
		ids  map[string]int64
	}{{"keys", l.lock.Keys}, {"params", l.lock.Params}} {
		fmt.Fprintf(&out, "\n[%s]\n", part.name)
		byID := func(a, b string) int { return cmp.Compare(part.ids[a], part.ids[b]) }
		for _, name := range slices.SortedFunc(maps.Keys(part.ids), byID) {
			fmt.Fprintf(&out, "%s = %d\n", name, part.ids[name])
		}
	}
	return out.Bytes(), l.lock.added, nil
}

// readLock reads the lock file, if there is one.
func (l *loader) readLock() {
	l.lock = lockFile{Keys: make(map[string]int64), Params: make(map[string]int64)}
	text, err := fileio.Read(l.tables, LockFile, tableMaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.problem(LockFile, "", "%w", err)
		return
	}
	var file struct {
		Keys   map[string]int64 `toml:"keys"`
		Params map[string]int64 `toml:"params"`
	}
	if !l.unmarshal(LockFile, text, &file) {
		return
	}
	l.checkLock("keys", file.Keys, int64(IDKey))
	l.checkLock("params", file.Params, 0)
	maps.Copy(l.lock.Keys, file.Keys)
	maps.Copy(l.lock.Params, file.Params)
}

// checkLock checks one table of the lock file, whose ids are all above least.
func (l *loader) checkLock(table string, ids map[string]int64, least int64) {
	names := make(map[int64]string, len(ids))
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id := ids[name]
		label := errtext.Name(table + "." + name)
		switch other, taken := names[id]; {
		case !validName.MatchString(name):
			l.problem(LockFile, label, "a name consists of letters, digits and _")
		case id <= least || id > math.MaxUint32:
			l.problem(LockFile, label, "id must be %d to %d", least+1, uint32(math.MaxUint32))
		case taken:
			l.problem(LockFile, label, "has id %d, as %s has; drop the newer line and run rankd registry lock", id, errtext.Name(other))
		default:
			names[id] = name
		}
	}
}

// An assignment gives the rows of one table file their ids. One goroutine.
type assignment struct {
	*loader
	file    string
	ids     map[string]int64 // of the lock, by name
	names   map[int64]string // the same by id
	least   int64            // no lock has ids up to it
	last    int64            // the greatest id of the lock and of the rows
	none    int              // rows without an id
	without string           // the first of them
}

// assign begins to give ids, above least, to the rows of a file. name is their part of the lock.
func (f *lockFile) assign(l *loader, file, part string, least int64) *assignment {
	a := &assignment{loader: l, file: file, ids: f.Keys, names: make(map[int64]string), least: least, last: least}
	if part == "params" {
		a.ids = f.Params
	}
	for name, id := range a.ids {
		a.names[id] = name
		a.last = max(a.last, id)
	}
	return a
}

// given notes the id that a row gives itself, and compares it with the lock. All of them are noted before new ids are given.
func (a *assignment) given(label, name string, id *int64) {
	if id == nil {
		return
	}
	a.last = max(a.last, *id)
	locked, known := a.ids[name]
	owner, taken := a.names[*id]
	switch {
	case *id <= a.least: // It stands in no lock.
	case known && locked != *id:
		a.problem(a.file, label, "has id %d, but %s of %s is %d there", *id, LockFile, errtext.Name(name), locked)
	case taken && owner != name:
		a.problem(a.file, label, "id %d belongs to %s in %s, and no id is given twice", *id, errtext.Name(owner), LockFile)
	case a.locking && !known && validName.MatchString(name):
		a.ids[name], a.names[*id] = *id, name
	}
}

// complete gives a row without an id the one in the lock, or a new one if that is allowed. It returns false if there
// is none.
func (a *assignment) complete(label, name string, id **int64) bool {
	if *id != nil {
		return true
	}
	locked, known := a.ids[name]
	switch {
	case known:
	case a.locking:
		a.last++
		locked = a.last
		a.lock.added = append(a.lock.added, name)
		if validName.MatchString(name) {
			a.ids[name], a.names[locked] = locked, name
		}
	default:
		if a.none++; a.none == 1 {
			a.without = label
		}
		return false
	}
	*id = &locked
	return true
}

// finish reports the rows without ids, as one problem.
func (a *assignment) finish() {
	switch {
	case a.none == 1:
		a.problem(a.file, a.without, "has no id in %s: run rankd registry lock", LockFile)
	case a.none > 1:
		a.problem(a.file, a.without, "and %d more have no id in %s: run rankd registry lock", a.none-1, LockFile)
	}
}

package plantest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/rankd/rankd/internal/fileio"
)

// SnapshotExtension ends the names of files with snapshots. Those of feed.plan.test.ts are in
// feed.plan.test.snap.json.
const SnapshotExtension = ".snap.json"

// snapshots are the answers that tests of one file have recorded. One goroutine.
type snapshots struct {
	path   string
	before map[string]json.RawMessage // by name, from the file
	now    map[string]json.RawMessage // that the tests asked for
}

// readSnapshots reads the snapshots of a file with tests. A file that is missing has none.
func readSnapshots(tests string) (*snapshots, error) {
	s := &snapshots{path: strings.TrimSuffix(tests, ".ts") + SnapshotExtension, before: map[string]json.RawMessage{}, now: map[string]json.RawMessage{}}
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.before)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return s, nil
}

// compared is what a test gets for its snapshot.
type compared struct {
	Name   string          `json:"name"`
	Before json.RawMessage `json:"before"` // null: there is none
}

// compare notes the value of the n-th snapshot of a test, and returns what was recorded before. An update records the value.
func (s *snapshots) compare(test string, n int, value json.RawMessage, update bool) (compared, error) {
	name := test
	if n > 1 {
		name = fmt.Sprintf("%s (%d)", test, n)
	}
	s.now[name] = value
	if update {
		return compared{name, value}, nil
	}
	return compared{name, s.before[name]}, nil
}

// write writes the snapshots that the tests asked for. Others stay, unless all tests ran.
func (s *snapshots) write(all bool) error {
	after := map[string]json.RawMessage{}
	if !all {
		maps.Copy(after, s.before)
	}
	maps.Copy(after, s.now)
	if len(after) == 0 {
		if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(after); err != nil {
		return err
	}
	if before, err := os.ReadFile(s.path); err == nil && bytes.Equal(before, out.Bytes()) {
		return nil
	}
	return fileio.Replace(s.path, out.Bytes())
}

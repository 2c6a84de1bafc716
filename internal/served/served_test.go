package served

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

var secrets = []string{strings.Repeat("a", 32), strings.Repeat("b", 40)}

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	for text, want := range map[string]string{
		"": "there is no key", "k1": "line 1: a key is NAME SECRET", "k1 short": "line 1: a secret has at least 32 bytes, not 5",
		"k1 " + secrets[0] + "\n\nk1 " + secrets[1]: `line 3: there are two keys "k1"`, "k:1 " + secrets[0]: "has no colon",
	} {
		write(text)
		_, err := ReadKeys(path)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), secrets[0])
	}
	write("# rotated\nk2 " + secrets[1] + "\nk1 " + secrets[0] + "\n")
	keys, err := ReadKeys(path)
	require.NoError(t, err)
	// printf 7 | openssl dgst -sha256 -hmac bbbb…
	assert.Regexp(t, "^hmac:k2:[0-9a-f]{64}$", keys.Name("7"))
	assert.Equal(t, keys.Name("7"), keys.Names("7")[0])
	assert.Len(t, keys.Names("7"), 2)

	write("k3 " + secrets[0])
	keys.next = time.Time{}
	assert.Regexp(t, "^hmac:k3:", keys.Name("7"), "the key has rotated")
	write("\ufeffk4 " + secrets[0])
	keys.next = time.Time{}
	assert.Regexp(t, "^hmac:k4:", keys.Name("7"), "a byte order mark is not a part of the name")
	write("broken")
	keys.next = time.Time{}
	assert.Regexp(t, "^hmac:k4:", keys.Name("7"), "a broken file changes nothing")
	_, err = ReadKeys(t.TempDir())
	require.ErrorContains(t, err, "a folder")
}

// TestFilesRotate: a file ends by its size, and each has whole lines.
func TestFilesRotate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	f, err := NewFiles(dir, 100)
	require.NoError(t, err)
	for i := range 20 {
		n, err := f.Write(fmt.Appendf(nil, "%030d\n", i))
		require.NoError(t, err)
		require.Equal(t, 31, n)
	}
	require.NoError(t, f.Close())
	paths, err := filepath.Glob(filepath.Join(dir, "served-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, paths, 5, "four lines each")
	all := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, 4*31, len(text))
		all += bytes.Count(text, []byte{'\n'})
	}
	assert.Equal(t, 20, all)
}

// TestAFileThatIsRemovedHasASuccessor: whoever ships files may take one too many.
func TestAFileThatIsRemovedHasASuccessor(t *testing.T) {
	dir := t.TempDir()
	f, err := NewFiles(dir, 1<<20)
	require.NoError(t, err)
	for _, gone := range []bool{false, true} {
		if gone {
			paths, err := LogFiles(dir)
			require.NoError(t, err)
			require.NoError(t, os.Remove(paths[0]))
		}
		_, err := f.Write([]byte("line\n"))
		require.NoError(t, err)
		paths, err := LogFiles(dir)
		require.NoError(t, err)
		require.Len(t, paths, 1)
		text, err := os.ReadFile(paths[0])
		require.NoError(t, err)
		assert.Equal(t, "line\n", string(text))
	}
	require.NoError(t, f.Close())
}

// TestPurge: all lines of the user go, under her id and each key, and none of others; a file that is written stays.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(path, []byte("k2 "+secrets[1]+"\nk1 "+secrets[0]+"\n"), 0o600))
	keys, err := ReadKeys(path)
	require.NoError(t, err)
	old := keys.Names("7")[1]
	line := func(user any) string {
		text, _ := json.Marshal(user)
		return `{"served_log":1,"outputs":[{"user_id":7}],"user_id":` + string(text) + "}\n"
	}
	file := filepath.Join(dir, "served-1.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(line(7)+line(8)+line("7")+line(keys.Name("7"))+line(old)+line(77)+`{"served_log":1,"user_id":7`), 0o640))
	other := filepath.Join(dir, "served-2.jsonl")
	require.NoError(t, os.WriteFile(other, []byte(line(8)), 0o640))
	f, err := NewFiles(dir, 1<<20)
	require.NoError(t, err)
	_, err = f.Write([]byte(line(7)))
	require.NoError(t, err)

	done, err := Purge(dir, "7", keys)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 5, 1}, []int{done.Files, done.Lines, len(done.Left)})
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, line(8)+line(77), string(text))

	require.NoError(t, f.Close())
	done, err = Purge(dir, "7", nil)
	require.NoError(t, err)
	assert.Equal(t, Purged{Files: 1, Lines: 1}, done)

	require.NoError(t, os.WriteFile(other, []byte(line(8)+"{}\n"+line(7)), 0o640))
	_, err = Purge(dir, "7", nil)
	require.ErrorContains(t, err, "line 2: is not a line of the log")
	text, err = os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, line(8)+"{}\n"+line(7), string(text), "nothing was lost")
	require.NoError(t, os.WriteFile(other, []byte(line(8)+line(old)+line("hmac:k9:00")+line("hmac: a user")), 0o640))
	for have, unknown := range map[*Keys]int{keys: 1, nil: 2} {
		done, err = Purge(dir, "9", have)
		require.NoError(t, err)
		assert.Equal(t, Purged{Unknown: unknown}, done, "lines whose user nobody can tell")
	}
	renamed := filepath.Join(dir, "of-a-day.jsonl")
	require.NoError(t, os.WriteFile(renamed, []byte(line(7)), 0o640))
	done, err = Purge(dir, "7", keys)
	require.NoError(t, err)
	assert.Equal(t, Purged{Files: 2, Lines: 2, Unknown: 1}, done, "of files with any name")
	_, err = Purge(t.TempDir(), "7", nil)
	require.ErrorContains(t, err, "has no file *.jsonl")
	_, err = Purge(filepath.Join(dir, "none"), "7", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzUserOf: the user is that which another reader finds.
func FuzzUserOf(f *testing.F) {
	for _, seed := range []string{`{"served_log":1,"user_id":7}`, `{"user_id":"a","served_log":1}`, `{"served_log":1,"user_id":null}`, `{"served_log":1,"user_id":1e3}`, `[]`, `{`, `{"served_log":{},"user_id":"\u00e9"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		user, err := userOf(line)
		if err != nil {
			return
		}
		var want struct {
			User json.RawMessage `json:"user_id"`
		}
		d := json.NewDecoder(bytes.NewReader(line))
		require.NoError(t, d.Decode(&want))
		text := string(want.User)
		if text[0] == '"' {
			require.NoError(t, json.Unmarshal(want.User, &text))
		}
		assert.Equal(t, text, user)
	})
}

// rounding says in which datatype a service gets columns.
type rounding map[registry.KeyID]string

func (r rounding) Rounds(id registry.KeyID) string { return r[id] }

// A column is written as the service got it, also if a later service does not get it at all.
func TestColumnsAreRounded(t *testing.T) {
	at := &plan.Node{}
	for _, later := range []rounding{nil, {}} {
		nodes := []*plan.Node{at, {Index: 1, Inputs: []int{0}, Prepared: rounding{1: "FP32", 2: "FP32", 3: "FP16", 4: "FP16"}}}
		if later != nil {
			nodes = append(nodes, &plan.Node{Index: 2, Inputs: []int{0}, Prepared: later})
		}
		r := &Record{Graph: &plan.Graph{Nodes: nodes}}
		r.Node = at
		for _, c := range []struct {
			column rowset.Column
			want   string
		}{
			{&rowset.FloatColumn{Key: 1, Values: []float64{0.1, 3}}, "[0.10000000149011612,3.0]"},
			{&rowset.IntColumn{Key: 2, Values: []int64{1<<24 + 1, math.MaxInt64}}, "[16777216,9223372036854775807]"},
			{&rowset.IntColumn{Key: 3, Values: []int64{2049, -1}}, "[2048,-1]"},
			{&rowset.VectorColumn{Key: 4, Dims: 2, Values: []float32{0.1, 1, 2049, -2}}, "[[0.099975586,1],[2048,-2]]"},
			{&rowset.FloatColumn{Key: 5, Values: []float64{0.1, 3}}, "[0.1,3.0]"},
		} {
			assert.Equal(t, c.want, string(appendScored(nil, r, c.column, []int32{0, 1})), c.column.KeyID())
		}
	}
}

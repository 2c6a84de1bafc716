package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/trace/record"
)

// source has the tables of generation g.
type source struct{ record.Source }

func (source) Generation(string) (*record.Generation, error) {
	tables := registrytest.Tables{Keys: registrytest.ID + registrytest.Key(2001, "age", "int", "private = true") + registrytest.Key(2002, "likes", "int"), Endpoints: registrytest.Redis}.FS()
	g := &record.Generation{Digest: "g", Env: "test"}
	names, err := fs.Glob(tables, "*")
	for _, name := range names {
		text, problem := fs.ReadFile(tables, name)
		err = errors.Join(err, problem)
		g.Tables = append(g.Tables, record.File{Name: name, Bytes: text})
	}
	return g, err
}

// ints is a column of integers.
func ints(name string, values ...uint64) record.Column {
	text := []byte{byte(registry.Int)}
	for _, v := range values {
		text = binary.LittleEndian.AppendUint64(append(text, 1), v)
	}
	return record.Column{Name: name, Values: text}
}

// folder has files of records: a.rec of users 7 and 8, b.rec of 8 and anna, torn.rec, sealed.rec, which key.txt opens, and keys.
func folder(t *testing.T) string {
	dir := t.TempDir()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	write := func(name string, recipients []string, cut int, requests ...*record.Request) {
		var out bytes.Buffer
		w, err := record.NewWriter(&out, record.Header{Commit: "v1", Sample: 0.5, Salt: "s", Recipients: recipients})
		require.NoError(t, err)
		for _, q := range requests {
			require.NoError(t, w.Add(q, source{}))
		}
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), out.Bytes()[:out.Len()-cut], 0o640))
	}
	request := func(id byte, user int64, text string) *record.Request {
		return &record.Request{
			ID: [16]byte{15: id}, RequestID: "visit-81", UserID: user, UserIDText: text, Arrived: time.Unix(1, 0).UTC(), Plan: "home", Params: []byte(`{"secret":1}`),
			Runs: []record.Run{{Plan: "home", Nodes: []record.Node{{ID: "n1", Op: "core::viewer", End: record.Failed,
				Values: []record.Value{{Kind: record.Reply, Bytes: []byte("$-1\r\n")}}, Failure: &record.Failure{Class: "redis", Text: "a secret \xff"}}}}},
			Generation: "g",
			Answer: &record.Answer{Outputs: []record.Rows{{N: 2, IDs: ints("id", 11, 12), Columns: []record.Column{
				ints("age", 33, 34), ints("likes", 5, 6), ints("unknown", 77, 78)}}}},
		}
	}
	write("a.rec", nil, 0, request(1, 7, ""), request(2, 8, ""))
	write("b.rec", nil, 0, request(2, 8, ""), request(3, 0, "anna"))
	write("torn.rec", nil, 3, request(4, 7, ""))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sealed"), 0o750))
	write("sealed/c.rec", []string{id.Recipient().String()}, 0, request(5, 7, ""))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.txt"), []byte(id.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "recipient"), []byte(id.Recipient().String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys"), []byte("k2 "+strings.Repeat("b", 32)+"\nk1 "+strings.Repeat("a", 32)+"\n"), 0o600))
	return dir
}

// execute runs the command in a folder.
func execute(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Chdir(dir)
	var out, errs bytes.Buffer
	cmd := (&Program{Stdout: &out, Stderr: &errs}).Command()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

// TestShow: names are keyed hashes, and what is private needs a flag.
func TestShow(t *testing.T) {
	dir := folder(t)
	keys, err := served.ReadKeys(filepath.Join(dir, "keys"))
	require.NoError(t, err)
	const id = "00000000-0000-0000-0000-000000000001"
	for _, c := range []struct {
		name            string
		args            []string
		user, visit, id string
		has             bool
	}{
		{"by the newest key", []string{"--user_key_file", "keys"}, keys.Name("7"), keys.Name("visit-81"), keys.Name(id), false},
		{"by its own key", nil, "", "", "", false},
		{"private", []string{"--private"}, "7", "visit-81", id, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, err := execute(t, dir, append([]string{"show", "a.rec"}, c.args...)...)
			require.NoError(t, err)
			assert.Empty(t, stderr)
			lines := strings.Split(strings.TrimSpace(stdout), "\n")
			require.Len(t, lines, 2)
			var l line
			require.NoError(t, json.Unmarshal([]byte(lines[0]), &l))
			if c.user == "" {
				again, _, err := execute(t, dir, "show", "a.rec")
				require.NoError(t, err)
				assert.NotEqual(t, again, stdout)
				assert.Contains(t, l.UserID, "hmac:once:")
				assert.Contains(t, lines[1], l.RequestID, "the same name for the same visit")
				c.user, c.visit, c.id = l.UserID, l.RequestID, l.EngineRequestID
			}
			assert.Equal(t, []string{c.user, c.visit, c.id}, []string{l.UserID, l.RequestID, l.EngineRequestID})
			for _, text := range []string{"secret", "visit-81", id} {
				assert.Equal(t, c.has, strings.Contains(stdout, text), text)
			}
			assert.Equal(t, []any{"home", "v1", 0.5, 2}, []any{l.Plan, l.Commit, l.Probability, l.Outputs[0].Rows})
			assert.Contains(t, lines[0], `"ids":[11,12]`)
			assert.Contains(t, lines[0], `"likes":[5,6]`)
			assert.Equal(t, c.has, strings.Contains(lines[0], `"age":[33,34]`))
			assert.Equal(t, c.has, strings.Contains(lines[0], `"unknown":[77,78]`), "nobody knows whether it is private")
			n := l.Runs[0].Nodes[0]
			assert.Equal(t, []any{"n1", "core::viewer", "failed", "redis", 1, 5}, []any{n.ID, n.Op, n.End, n.Failure.Class, n.Values, n.Bytes})
		})
	}
	stdout, stderr, err := execute(t, dir, "show", ".", "--private")
	require.NoError(t, err)
	assert.Equal(t, 5, strings.Count(stdout, "\n"))
	assert.Contains(t, stdout, `"user_id":"anna"`)
	assert.Contains(t, stderr, "rankd: torn.rec: byte ")
	stdout, _, err = execute(t, dir, "show", "sealed", "--identity_file", "key.txt", "--private")
	require.NoError(t, err)
	assert.Contains(t, stdout, "visit-81")
}

func TestMergeAndPurge(t *testing.T) {
	dir := folder(t)
	stdout, stderr, err := execute(t, dir, "merge", ".", "--out", "all")
	require.NoError(t, err)
	assert.Equal(t, "4 requests of 3 files; 1 were there again\n", stdout)
	assert.Contains(t, stderr, "torn.rec")
	info, err := os.Stat(filepath.Join(dir, "all"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode())
	stdout, stderr, err = execute(t, dir, "purge", "all", "sealed", "--user", "7", "--identity_file", "key.txt")
	require.NoError(t, err)
	assert.Equal(t, "3 requests gone from 2 files\n", stdout)
	assert.Empty(t, stderr)
	stdout, _, err = execute(t, dir, "show", "all", "--private")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(stdout, "\n"))
	assert.NotContains(t, stdout, `"user_id":"7"`)

	recipient, err := os.ReadFile(filepath.Join(dir, "recipient"))
	require.NoError(t, err)
	_, _, err = execute(t, dir, "merge", "a.rec", "sealed", "--out", "both", "--identity_file", "key.txt", "--encrypt_to", string(recipient))
	require.NoError(t, err)
	_, _, err = execute(t, dir, "show", "both")
	require.ErrorContains(t, err, "needs the identity")
}

func TestRefused(t *testing.T) {
	dir := folder(t)
	lock, err := record.NewFiles(filepath.Join(dir, "now"), 1<<20, func() record.Header { return record.Header{} })
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o750))
	for says, args := range map[string]string{
		"record needs one of its commands: show, merge, purge": "",
		"requires at least 1 arg":                              "show",
		"empty: the folder has no file *.rec":                  "show empty",
		"keys: byte 0: a file of records begins":               "show keys",
		"no such file":                                         "show nowhere.rec",
		"needs the identity":                                   "show sealed",
		"--identity_file: keys: ":                              "show sealed --identity_file keys",
		"--user_key_file: key.txt: line 1":                     "show a.rec --user_key_file key.txt",
		"record merge needs --out":                             "merge a.rec",
		"open a.rec: file exists":                              "merge b.rec --out a.rec",
		"say to whom":                                          "merge a.rec sealed --identity_file key.txt --out new",
		"recipient 1 is no public key":                         "merge a.rec --encrypt_to you --out new",
		"record purge needs --user":                            "purge a.rec",
		"a process writes it":                                  "purge now --user 7",
	} {
		_, _, err := execute(t, dir, strings.Fields(args)...)
		assert.ErrorContains(t, err, says, args)
		assert.NoFileExists(t, filepath.Join(dir, "new"))
		if key, _ := os.ReadFile(filepath.Join(dir, "key.txt")); err != nil {
			assert.NotContains(t, fmt.Sprint(err), string(key))
		}
	}
}

package record

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// file writes bytes to a file.
func file(t *testing.T, content []byte) string {
	path := filepath.Join(t.TempDir(), "f"+Ending)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// TestPurge: nothing of the user stays, be it an id or a text, in a file that is encrypted, torn or has expired.
func TestPurge(t *testing.T) {
	mine := identity(t)
	secret := []byte("only of user 7, in 64 bytes or more, so that it is a blob of its own ....")
	hers, text, shared := request(1, 7), request(2, 0), request(3, 8)
	hers.Trace, text.Trace, text.UserIDText = secret, secret, "7"
	hers.Generation, shared.Generation = "hers", "shared"
	for _, h := range []Header{{Sample: 1, Salt: "s"}, {Sample: 1, Recipients: []string{mine.Recipient().String()}}, {Sample: 1, Expires: time.Unix(1, 0).UTC()}} {
		for _, cut := range []bool{false, true} {
			o := ReadOptions{Identities: []age.Identity{mine}}
			content := write(t, h, hers, shared, text, shared)
			if cut {
				content = content[:len(content)-1]
			}
			path := file(t, content)
			done, err := Purge(path, "7", o)
			require.NoError(t, err)
			assert.Equal(t, 2, done.Requests)
			assert.Equal(t, cut, done.Torn != nil)
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.NotContains(t, string(left), string(secret))
			o.Now = time.Unix(0, 0)
			got, err := readAll(left, o)
			require.NoError(t, err)
			assert.Equal(t, []*Request{shared, shared}, got)
			r, err := Open(path, o)
			require.NoError(t, err)
			assert.Equal(t, &h, r.Header())
			_, _ = r.Next()
			_, err = r.Generation("hers")
			assert.Error(t, err)
			require.NoError(t, r.Close())
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o600), info.Mode())

			done, err = Purge(path, "7", o)
			require.NoError(t, err)
			assert.Equal(t, Purged{}, done)
			same, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, left, same, "a file without the user stays as it is")
		}
	}
	torn := write(t, Header{Sample: 1}, shared, hers)
	path := file(t, torn[:len(torn)-40])
	done, err := Purge(path, "7", ReadOptions{})
	require.NoError(t, err)
	require.Positive(t, done.Torn.Bytes)
	done, err = Purge(path, "7", ReadOptions{})
	require.NoError(t, err)
	assert.Equal(t, Purged{}, done, "what is cut off may be of the user: it is gone")

	bad := write(t, Header{Sample: 1}, hers, shared)
	bad[len(bad)-1] ^= 1
	path = file(t, bad)
	_, err = Purge(path, "7", ReadOptions{})
	require.ErrorIs(t, err, ErrDamaged)
	same, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, bad, same)
}

// marked is a request outside the sample.
func marked(q *Request) *Request {
	m := *q
	m.Marked = true
	return &m
}

func TestMerge(t *testing.T) {
	mine, other := identity(t), identity(t)
	to := func(ids ...*age.X25519Identity) (keys []string) {
		for _, id := range ids {
			keys = append(keys, id.Recipient().String())
		}
		return keys
	}
	q := func(id byte) *Request { return request(id, int64(id)) }
	in := func(h Header, requests ...*Request) []byte { return write(t, h, requests...) }
	cut := func(file []byte) []byte { return file[:len(file)-100] }
	early, late := time.Unix(1<<40, 0).UTC(), time.Unix(1<<41, 0).UTC()
	type row struct {
		id      byte
		share   float64
		marked  bool
		expires time.Time
	}
	for _, c := range []struct {
		name       string
		files      [][]byte
		recipients []string
		want       []row
		twice      int
		refused    string
	}{
		{name: "two files", files: [][]byte{in(Header{Sample: 1}, q(1), q(2)), in(Header{Sample: 1}, q(3))},
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}, {id: 3, share: 1}}},
		{name: "what is there again", files: [][]byte{in(Header{Sample: 1}, q(1), q(2), q(1)), in(Header{Sample: 1}, q(2), q(3))},
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}, {id: 3, share: 1}}, twice: 2},
		{name: "the greater share counts", files: [][]byte{in(Header{Sample: .1, Salt: "s"}, q(1), q(2)), in(Header{Sample: .5, Salt: "s"}, q(2), q(3)), in(Header{Sample: .2, Salt: "s"}, q(2))},
			want: []row{{id: 1, share: .1}, {id: 2, share: .5}, {id: 3, share: .5}}, twice: 2},
		{name: "a request of the sample counts", files: [][]byte{in(Header{Sample: .5, Salt: "s"}, marked(q(1)), marked(q(2))), in(Header{Sample: .1, Salt: "s"}, q(1))},
			want: []row{{id: 2, share: .5, marked: true}, {id: 1, share: .1}}, twice: 1},
		{name: "other salts", files: [][]byte{in(Header{Sample: .1, Salt: "s"}, q(1)), in(Header{Sample: .1, Salt: "t"}, q(2))}, refused: `by the salt "t", and a file before it by "s"`},
		{name: "other salts, and one has all users", files: [][]byte{in(Header{Sample: .1, Salt: "s"}, q(1)), in(Header{Sample: 1, Salt: "t"}, q(1), q(2))},
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}}, twice: 1},
		{name: "other salts behind a file of all", files: [][]byte{in(Header{Sample: 1, Salt: "s"}), in(Header{Sample: .1, Salt: "s"}), in(Header{Sample: .2, Salt: "t"})}, refused: "do not combine"},
		{name: "the earliest expiry", files: [][]byte{in(Header{Sample: 1, Expires: late}, q(1)), in(Header{Sample: 1}, q(2)), in(Header{Sample: 1, Expires: early})},
			want: []row{{1, 1, false, early}, {2, 1, false, early}}},
		{name: "no requests", files: [][]byte{in(Header{Sample: 1}), in(Header{Sample: 1})}},
		{name: "encrypted to the same", files: [][]byte{in(Header{Sample: 1, Recipients: to(mine, other)}, q(1)), in(Header{Sample: 1, Recipients: to(other, mine)}, q(2))},
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}}},
		{name: "to others", files: [][]byte{in(Header{Sample: 1, Recipients: to(mine)}, q(1)), in(Header{Sample: 1}, q(2))}, refused: "say to whom"},
		{name: "to others, and it says to whom", files: [][]byte{in(Header{Sample: 1, Recipients: to(mine)}, q(1)), in(Header{Sample: 1}, q(2))}, recipients: to(mine),
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}}},
		{name: "a torn file", files: [][]byte{in(Header{Sample: 1}, q(1)), cut(in(Header{Sample: 1}, q(2), q(3), q(4))), {}},
			want: []row{{id: 1, share: 1}, {id: 2, share: 1}, {id: 3, share: 1}}},
		{name: "no header at all", files: [][]byte{{}}, refused: "no file has a header"},
		{name: "damaged", files: [][]byte{append(in(Header{Sample: 1}, q(1)), 0)}, refused: "follow the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var paths []string
			for _, content := range c.files {
				paths = append(paths, file(t, content))
			}
			o := MergeOptions{Read: ReadOptions{Identities: []age.Identity{mine}}, Recipients: c.recipients}
			var torn []string
			o.Torn = func(path string, _ *Torn) { torn = append(torn, path) }
			var out bytes.Buffer
			done, err := Merge(&out, paths, o)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, Merged{len(c.want), c.twice}, done)
			r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), o.Read)
			require.NoError(t, err)
			for _, want := range c.want {
				got, err := r.Next()
				require.NoError(t, err)
				h := r.Header()
				assert.Equal(t, want, row{got.ID[0], h.Sample, got.Marked, h.Expires})
				wanted := q(want.id)
				wanted.Marked = want.marked
				assert.Equal(t, wanted, got)
				_, err = r.Generation(got.Generation)
				require.NoError(t, err)
			}
			_, err = r.Next()
			require.Equal(t, "EOF", err.Error())
			if c.name == "a torn file" {
				assert.Equal(t, paths[1:], torn)
				o.Torn = nil
				_, err = Merge(&out, paths, o)
				require.ErrorContains(t, err, "torn")
			} else {
				assert.Empty(t, torn)
			}
		})
	}
}

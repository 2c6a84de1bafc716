package builtin

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// walked returns the value at the end of a path of names into a document, as encoding/json
// reads it.
func walked(document any, names []string) (value any, ok bool) {
	for _, name := range names {
		switch at := document.(type) {
		case map[string]any:
			if document, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || strconv.Itoa(i) != name || i < 0 || i >= len(at) {
				return nil, false
			}
			document = at[i]
		default:
			return nil, false
		}
	}
	return document, true
}

func decoded(t *testing.T, text []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&value), "%q", text)
	return value
}

// The values at two paths of a document equal those that a walk through the whole document
// finds.
func FuzzDocuments(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"title": "Rain", "author": {"name": "Ann", "tags": ["a", "b"]}, "n": 1e3}`, "title", "/author/name"},
		{` [ {"a": null}, [true, -0.5, {}], "x" ] `, "/0/a", "/1/2"},
		{`{"a/b": {"~": 1, "": 2}, "01": 3}`, "/a~1b/~0", "/a~1b/"},
		{`{"a": 1, "a": 2}`, "a", "/b"}, {`{"a": 1} {}`, "a", "a"}, {`{"a":{"b":1,"c":2},"x":1,"a":{"c":3}}`, "/a/b", "/a/c"}, {"\ufeff{\"a\": \"\\ud83c\", \"b\": 2}", "a", "b"}, {`{"a": [1, 2}`, "a", "/a/0"}, {"7", "a", "/0"}, {"", "a", "/"}, {`{"a":{"b":1}}`, "a", "/a/b"},
		{"{\"a\": \"\xff\"}", "a", "/~"}, {`{"a": "😀\n"}`, "a", "/a/1"},
	} {
		f.Add([]byte(seed[0]), seed[1], seed[2])
	}
	var r documentReader // used again and again, as a node does
	f.Fuzz(func(t *testing.T, text []byte, a, b string) {
		keys := []*registry.Key{{Name: "a", Field: a}, {Name: "b", Field: b}}
		paths, err := newDocumentPaths(keys)
		if err != nil {
			return
		}
		r.values = make([][]byte, 2)
		err = r.read(text, paths)
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
		valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		require.Equal(t, valid, err == nil, "%q: %v", text, err)
		if err != nil {
			return
		}
		document := decoded(t, text)
		for i, key := range keys {
			names, err := pointerNames(key.Field)
			require.NoError(t, err)
			want, ok := walked(document, names)
			require.Equal(t, ok, r.values[i] != nil, "%q in %q", key.Field, text)
			if ok {
				require.Equal(t, want, decoded(t, r.values[i]))
			}
		}
	})
}

func TestDocumentPathsAreRefused(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{[]string{"/a~2"}, `fields[0]: key k0: the JSON pointer "/a~2" has a single ~; write ~0`},
		{[]string{"/a/b", "/a"}, "fields[1]: key k1 has an object or an array for its value: another key is inside it"},
		{[]string{"/a/0", "a"}, "fields[1]: key k1 has an object"},
	} {
		var keys []*registry.Key
		for i, field := range c.fields {
			keys = append(keys, &registry.Key{Name: "k" + strconv.Itoa(i), Field: field})
		}
		_, err := newDocumentPaths(keys)
		assert.ErrorContains(t, err, c.want)
	}
}

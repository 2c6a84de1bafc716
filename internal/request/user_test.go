package request

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/registrytest"
	"github.com/rankd/rankd/registry"
)

// textUsers returns the built-in registry with users whose ids are strings.
func textUsers(t *testing.T) *registry.Registry {
	tables := registrytest.BuiltIn().FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n")}
	reg, err := registry.Load(tables, "test")
	require.NoError(t, err)
	return reg
}

func TestSetUserID(t *testing.T) {
	reg, err := registry.Default("test")
	require.NoError(t, err)
	for text, want := range map[string]int64{"1": 1, "0007": 7, "4294967295": UserIDMax} {
		var got Given
		require.NoError(t, got.SetUserID([]byte(text), reg))
		assert.Equal(t, Given{UserID: want}, got)
	}
	for _, text := range []string{"", "0", "-1", "+1", "4294967296", "99999999999999999999", "1.0", "a", " 1"} {
		assert.ErrorContains(t, new(Given).SetUserID([]byte(text), reg), "user_id as a string must be decimal digits", text)
	}
	reg = textUsers(t)
	for _, text := range []string{"u-1", "1", "0007", " ", "é{user}", "9e107d9d-372b-4c81", strings.Repeat("x", 256)} {
		var got Given
		require.NoError(t, got.SetUserID([]byte(text), reg))
		assert.Equal(t, Given{UserIDText: text}, got)
	}
	for _, text := range []string{"", strings.Repeat("x", 257), "a\xff"} {
		assert.ErrorContains(t, new(Given).SetUserID([]byte(text), reg), "user_id must be a string of 1 to 256 bytes of UTF-8", text)
	}
}

func TestParseOfUsersThatAreStrings(t *testing.T) {
	parser := NewParser(textUsers(t))
	for _, c := range []struct {
		user  string // in JSON; "": none
		given string
		want  string // the user; "": the document is refused
		err   string
	}{
		{`"u-1"`, "", "u-1", ""},
		{`"007"`, "", "007", ""},
		{`"\u00e9\u0000"`, "", "é\x00", ""},
		{`"u-1"`, "u-1", "u-1", ""},
		{``, "u-1", "u-1", ""},
		{`"` + strings.Repeat("x", 256) + `"`, "", strings.Repeat("x", 256), ""},
		{`"` + strings.Repeat("x", 257) + `"`, "", "", "user_id must be a string of 1 to 256 bytes of UTF-8, got \"xxx"},
		{`""`, "", "", `of UTF-8, got ""`},
		{`7`, "", "", "of UTF-8, got the integer 7"},
		{`null`, "u-1", "", "of UTF-8, got null"},
		{`["u-1"]`, "", "", "of UTF-8, got an array"},
		{`"u-2"`, "u-1", "", `user_id is "u-2", and the request came for user "u-1"`},
		{``, "", "", "missing required field: user_id"},
	} {
		doc := `{"request_id": "r"}`
		if c.user != "" {
			doc = fmt.Sprintf(`{"request_id": "r", "user_id": %s}`, c.user)
		}
		got, err := parser.Parse([]byte(doc), Given{UserIDText: c.given})
		if c.want == "" {
			assert.ErrorContains(t, err, c.err, doc)
			continue
		}
		require.NoError(t, err, doc)
		assert.Equal(t, Request{ID: "r", UserIDText: c.want}, got)
	}
	got, err := parser.Parse(nil, Given{UserIDText: "u-1", RequestID: "r", Plan: "p"})
	require.NoError(t, err)
	assert.Equal(t, Request{ID: "r", UserIDText: "u-1", Plan: "p"}, got)
}

// TestCheckOfUsers: a request that Go code makes names the user as the registry says.
func TestCheckOfUsers(t *testing.T) {
	integers, err := registry.Default("test")
	require.NoError(t, err)
	for _, c := range []struct {
		reg  *registry.Registry
		r    Request
		want string
	}{
		{integers, Request{UserID: 1}, ""},
		{integers, Request{UserID: 1, UserIDText: "1"}, `user_id must be an integer from 1 to 4294967295, got "1"`},
		{integers, Request{UserIDText: "u-1"}, `user_id must be an integer from 1 to 4294967295, got "u-1"`},
		{integers, Request{}, "got 0"},
		{textUsers(t), Request{UserIDText: "u-1"}, ""},
		{textUsers(t), Request{UserID: 1, UserIDText: "1"}, "user_id must be a string of 1 to 256 bytes of UTF-8, got 1"},
		{textUsers(t), Request{UserID: 1}, "got 1"},
		{textUsers(t), Request{}, `got ""`},
		{textUsers(t), Request{UserIDText: "a\xff"}, "got \"a"},
	} {
		refused := Check(&c.r, c.reg)
		if c.want == "" {
			assert.Nil(t, refused)
			continue
		}
		require.NotNil(t, refused, c.want)
		assert.Contains(t, refused.Detail, c.want)
	}
}

// FuzzUserIDText: a text that names a user as an argument also does so in a document.
func FuzzUserIDText(f *testing.F) {
	tables := registrytest.BuiltIn().FS()
	tables["entities.toml"] = &fstest.MapFile{Data: []byte("[[entity]]\nname = \"user\"\nid = \"string\"\n")}
	reg, err := registry.Load(tables, "test")
	require.NoError(f, err)
	parser := NewParser(reg)
	for _, text := range []string{"u-1", "", "007", "a\xff", "\"\\u0000", strings.Repeat("é", 129)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var g Given
		if g.SetUserID(text, reg) != nil {
			return
		}
		require.Equal(t, string(text), g.UserIDText)
		name, err := json.Marshal(string(text))
		require.NoError(t, err)
		r, err := parser.Parse(fmt.Appendf(nil, `{"user_id": %s}`, name), g)
		require.NoError(t, err)
		require.Equal(t, g.UserIDText, r.UserIDText)
		require.Nil(t, Check(&r, reg))
	})
}

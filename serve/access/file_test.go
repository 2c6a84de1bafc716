package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/request"
	"github.com/rankd/rankd/internal/testing/servetest"
)

func TestParse(t *testing.T) {
	callers, err := parse([]byte("# comment\n" + servetest.Token("feed", "t1", `plans = ["feed_*"]`, `overrides = ["weight"]`, `allow = ["trace", "explain"]`) +
		servetest.Token("ops", "t2", servetest.AllPlans)))
	require.NoError(t, err)
	require.Len(t, callers, 2)
	feed, ops := callers[0], callers[1]
	assert.Equal(t, "feed", feed.Name())
	assert.True(t, feed.MayPlan("feed_1") && feed.MayOverride("weight") && feed.Granted()[request.GrantTrace] && feed.Granted()[request.GrantExplain])
	assert.False(t, feed.MayPlan("other") || feed.MayOverride("other") || feed.Granted()[request.GrantScheduling])
	assert.True(t, ops.MayPlan("other"))
	assert.False(t, ops.MayOverride("weight") || ops.Granted()[request.GrantTrace] || ops.Granted()[request.GrantExplain] || ops.Granted()[request.GrantScheduling])
}

// A token may be in the wrong place. No problem quotes any of it.
func TestProblemsOfAFile(t *testing.T) {
	const secret = "s3cret"
	for _, c := range []struct{ name, text, want string }{
		{"no TOML", secret, "line 1: malformed TOML"},
		{"nothing", "", "no [[token]]"},
		{"a token instead of its digest", "[[token]]\nname = \"a\"\nplans = [\"*\"]\nsha256 = \"" + secret + "\"", "token 1 (a): sha256 must be the SHA-256 of the token, 64 hexadecimal digits"},
		{"a negative bound", servetest.Token("a", "t", servetest.AllPlans, "max_inflight = -1"), "token 1 (a): max_inflight must not be negative"},
		{"an unknown field", "[[token]]\nname = \"a\"\ntoken = \"" + secret + "\"", "line 3: unknown field; a [[token]] has name, sha256"},
		{"an unknown field of that name", servetest.Token("a", "t", servetest.AllPlans, secret+" = 1"), "line 5: unknown field"},
		{"a wrong type", "[[token]]\nname = 7 # " + secret, "line 2: malformed TOML, or a value of the wrong type"},
		{"no name", servetest.Token("", "t", servetest.AllPlans), "token 1: name must be"},
		{"a bad name", servetest.Token(secret+"!", "t", servetest.AllPlans), "token 1: name must be"},
		{"no digest", "[[token]]\nname = \"a\"\nplans = [\"*\"]", "token 1 (a): sha256 must be"},
		{"the digest of nothing", servetest.Token("a", "", servetest.AllPlans), "token 1 (a): sha256 is the digest of an empty token"},
		{"no plans", servetest.Token("a", "t"), "token 1 (a): plans is missing"},
		{"a broken pattern", servetest.Token("a", "t", `plans = ["[`+secret+`"]`), "token 1 (a): plans: pattern 1 is malformed"},
		{"an unknown grant", servetest.Token("a", "t", servetest.AllPlans, `allow = ["trace", "`+secret+`"]`), "token 1 (a): allow: word 2 is none of scheduling, trace, explain and now"},
		{"the same name", servetest.Token("a", "t1", servetest.AllPlans) + servetest.Token("a", "t2", servetest.AllPlans), "token 2 (a): another token has this name"},
		{"the same token", servetest.Token("a", "t", servetest.AllPlans) + servetest.Token("b", "t", servetest.AllPlans), "token 2 (b): another entry has this token"},
		{"many problems", strings.Repeat("[[token]]\n", 20), "token 10: name must be 1 to 64 letters, digits, \".\", \"_\" or \"-\"\nand 10 more problems"},
		{"too many tokens", strings.Repeat("[[token]]\n", tokensMax+1), "4097 tokens are too many; a file has at most 4096"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse([]byte(c.text))
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), secret)
		})
	}
}

// FuzzParse parses any text. No problem is long or quotes the token in it.
func FuzzParse(f *testing.F) {
	const secret = "c4n4ry-s3cret"
	f.Add(servetest.Token("a", "t", servetest.AllPlans), "\n")
	f.Add("[[token]]\nname = \"", "\"")
	f.Add("[[token]]\nplans = [", "")
	f.Add("[token.", "]\nx = 1")
	f.Fuzz(func(t *testing.T, before, after string) {
		callers, err := parse([]byte(before + secret + after))
		if err != nil {
			// A problem may quote a valid name.
			assert.False(t, strings.Contains(err.Error(), secret) && !strings.Contains(err.Error(), "("), err.Error())
			assert.Less(t, len(err.Error()), 4096)
		}
		for _, c := range callers {
			assert.Regexp(t, nameForm, c.Name())
		}
	})
}

func TestReadFileRefuses(t *testing.T) {
	if os.Getuid() < 0 {
		t.Skip("this system has no file modes")
	}
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, size int) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for _, c := range []struct {
		path    string
		refused os.FileMode
		want    string
	}{
		{write("owner", 0o600, 1), othersWrite | othersRead, ""},
		{write("group reads", 0o640, 1), othersWrite | othersRead, ""},
		{write("all read", 0o644, 1), othersWrite, ""},
		{write("all read a key", 0o644, 1), othersWrite | othersRead, "everybody may read it: its mode is 0644, and must not have 0004"},
		{write("group writes", 0o660, 1), othersWrite, "others than its owner may change it: its mode is 0660, and must not have 0020"},
		{write("all write", 0o606, 1), othersWrite | othersRead, "others than its owner may change it: its mode is 0606, and must not have 0006"},
		{write("large", 0o600, fileMaxBytes+1), othersWrite, "is larger than 1048576 bytes"},
		{dir, othersWrite, "is not a regular file"},
		{filepath.Join(dir, "none"), othersWrite, "no such file or directory"},
	} {
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			_, err := readFile(c.path, c.refused)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.path+": "+c.want)
			}
		})
	}
}

package registry_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

// loadService loads a registry whose only endpoint is a service with these fields.
func loadService(fields string) (*registry.Registry, error) {
	return registry.Load(fstest.MapFS{
		"keys.toml":           {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")},
		"params.toml":         {},
		"endpoints.test.toml": {Data: []byte("[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = \"http\"\n" + fields)},
	}, "test")
}

// Tokens and values of headers stay hidden.
func TestServices(t *testing.T) {
	t.Setenv("RANKD_TEST_SECRET", canary)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from-file\n"), 0o600))
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for _, c := range []struct {
		fields string
		url    string
		header http.Header
	}{
		{"host = \"h\"\nport = 81", "http://h:81/", http.Header{}},
		{"host = \"::1\"\nport = 81", "http://[::1]:81/", http.Header{}},
		{`url = "http://h"`, "http://h:80/", http.Header{}},
		{`url = "https://models.internal/v1/score?version=2"`, "https://models.internal:443/v1/score?version=2", http.Header{}},
		{fmt.Sprintf("url = \"http://h/v1?key=%s\"", canary), "http://h:80/v1?key=" + canary, http.Header{}},
		{fmt.Sprintf("url = \"http://h?key=%s\"", canary), "http://h:80/?key=" + canary, http.Header{}},
		{`url = "http://[::1]:9000/a%2Fb"`, "http://[::1]:9000/a%2Fb", http.Header{}},
		{"url = \"http://h\"\npolicy.bearer_token = \"t\"", "http://h:80/", bearer("t")},
		{fmt.Sprintf("url = \"http://h\"\npolicy.bearer_token_file = %q", file), "http://h:80/", bearer("from-file")},
		{"url = \"http://h\"\npolicy.bearer_token_env = \"RANKD_TEST_SECRET\"", "http://h:80/", bearer(canary)},
		{"url = \"http://h\"\n[[endpoint.header]]\nname = \"x-api-key\"\nvalue_env = \"RANKD_TEST_SECRET\"\n" +
			"[[endpoint.header]]\nname = \"X-Tenant\"\nvalue = \"feed\"", "http://h:80/",
			http.Header{"X-Api-Key": {canary}, "X-Tenant": {"feed"}}},
	} {
		t.Run(c.fields, func(t *testing.T) {
			reg, err := loadService(c.fields)
			require.NoError(t, err)
			reg, err = reg.ReadSecrets()
			require.NoError(t, err)
			e := reg.Endpoints()[0]
			assert.Equal(t, c.url, e.URL().String())
			assert.Equal(t, c.header, e.Header())
			assert.Equal(t, 16, e.Policy.Connections)

			var text strings.Builder
			require.NoError(t, reg.WriteText(&text))
			doc, err := json.Marshal(reg)
			require.NoError(t, err)
			for _, printed := range []string{text.String(), string(doc), fmt.Sprintf("%+v %#v", *e, *e)} {
				assert.NotContains(t, printed, canary)
				assert.NotContains(t, printed, "from-file")
			}
		})
	}
}

func TestServiceErrors(t *testing.T) {
	const at = "host = \"h\"\nport = 1\n"
	long := "[[endpoint.header]]\nname = \"A\"\nvalue = \"b\"\n"
	for fields, want := range map[string]string{
		`url = "ftp://h"`:                           "url: the scheme must be http:// or https://",
		`url = "h:80"`:                              "url: the scheme must be http:// or https://",
		`url = "http://u:c4n4ry@h"`:                 "url: a user or a password does not belong in the URL",
		`url = "http://h:c4n4ry"`:                   "url: the URL is malformed",
		`url = "http://h:70000"`:                    "url: the port must be a number from 1 to 65535",
		`url = "http://h:"`:                         "url: the URL is malformed",
		`url = "http://h/#c4n4ry"`:                  "url: the URL is malformed",
		`url = "http:///x"`:                         "url: host must be a host name or an IP address",
		at + `url = "http://h"`:                     "url excludes host, port and embedded",
		at + "policy.password = \"c4n4ry\"":         "only for kind redis",
		at + "policy.max_request_bytes = 0":         "policy.max_request_bytes must be 1 to 1073741824, not 0",
		at + "policy.max_answer_bytes = 1073741825": "policy.max_answer_bytes must be 1 to 1073741824, not 1073741825",
		at + "policy.bearer_token = \"c4n4ry\"\npolicy.bearer_token_env = \"A\"": "policy.bearer_token_env: the value is given twice",
		at + "header = 3": "header must be an array of tables, not an integer",
		at + "[[endpoint.header]]\nname = \"a b\"\nvalue = \"c4n4ry\"":                                        "header[0].name is not the name of a header",
		at + "[[endpoint.header]]\nname = \"Authorization: Bearer c4n4ry\"":                                   "header[0].name is not the name of a header",
		at + "[[endpoint.header]]\nname = \"A\"\nvalue_file = \"c4n4ry\\nx\"":                                 "header[0].value must be the name of a file or a variable",
		at + "policy.bearer_token_file = \"-----BEGIN c4n4ry\"":                                               "policy.bearer_token_file must be the name of a file or a variable",
		at + "[[endpoint.header]]\nname = \"content-type\"\nvalue = \"c4n4ry\"":                               "header[0].name: rankd itself sets Content-Type",
		at + "[[endpoint.header]]\nname = \"A\"":                                                              "header[0] needs a value, value_file or value_env",
		at + "[[endpoint.header]]\nname = \"A\"\nvalue = \"c4n4ry\\r\\nB: x\"":                                "header[0].value: the value has a line end",
		at + "[[endpoint.header]]\nname = \"A\"\nvalu = \"c4n4ry\"":                                           "unknown field endpoint.header.valu",
		at + "policy.bearer_token = \"t\"\n[[endpoint.header]]\nname = \"authorization\"\nvalue = \"c4n4ry\"": "policy.bearer_token sets Authorization, too",
		at + strings.Repeat(long, 65):                                                                         "has 65 headers, and may have 64",
	} {
		_, err := loadService(fields)
		require.ErrorContains(t, err, want, fields)
		assert.NotContains(t, err.Error(), canary, fields)
	}
	_, err := registry.Load(fstest.MapFS{
		"keys.toml":           {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")},
		"params.toml":         {},
		"endpoints.test.toml": {Data: []byte("[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\nhost = \"h\"\nport = 1\npolicy.bearer_token = \"c4n4ry\"")},
	}, "test")
	require.ErrorContains(t, err, "policy.bearer_token is only for kind http")
}

// The error of a secret names its source, if the secret cannot be read or cannot be the value
// of a header.
func TestServiceSecretsThatCannotBeRead(t *testing.T) {
	t.Setenv("RANKD_TEST_SECRET", canary+"\n"+canary)
	t.Setenv("RANKD_TEST_EMPTY", "")
	const at = "host = \"h\"\nport = 1\n"
	for fields, want := range map[string]string{
		at + "policy.bearer_token_file = \"/nowhere/t\"":                            "endpoint ep_1: bearer_token_file /nowhere/t: no such file or directory",
		at + "policy.bearer_token_env = \"RANKD_TEST_NONE\"":                        "endpoint ep_1: bearer_token_env RANKD_TEST_NONE: the environment has no such variable",
		at + "policy.bearer_token_env = \"RANKD_TEST_EMPTY\"":                       "endpoint ep_1: bearer_token_env RANKD_TEST_EMPTY: the bearer token is empty",
		at + "policy.bearer_token_env = \"RANKD_TEST_SECRET\"":                      "endpoint ep_1: bearer_token: the value has a line end or another control character",
		at + "[[endpoint.header]]\nname = \"A\"\nvalue_file = \"/nowhere/t\"":       "endpoint ep_1: header A: value_file /nowhere/t: no such file or directory",
		at + "[[endpoint.header]]\nname = \"A\"\nvalue_env = \"RANKD_TEST_SECRET\"": "endpoint ep_1: header A: the value has a line end or another control character",
	} {
		reg, err := loadService(fields)
		require.NoError(t, err, fields)
		_, err = reg.ReadSecrets()
		assert.EqualError(t, err, want)
	}
}

// Errors show nothing of a service's URL, whatever it is. A good URL is where requests go.
func FuzzServiceURL(f *testing.F) {
	for _, url := range []string{"http://h", "https://h:8443/a/b?c=d", "http://u:p@h", "http://[::1]:80/", "h", "http://h/%zz", "http://h:0", "http://h//a?b"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		quoted, err := json.Marshal(url)
		if err != nil || strings.ContainsFunc(url, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
			t.Skip()
		}
		reg, err := loadService("url = " + string(quoted))
		if err != nil {
			return
		}
		at := reg.Endpoints()[0].URL()
		assert.Contains(t, []string{"http", "https"}, at.Scheme)
		assert.Equal(t, reg.Endpoints()[0].Addr(), at.Host)
		assert.Nil(t, at.User)
		assert.True(t, strings.HasPrefix(at.Path, "/"), at.Path)
	})
}

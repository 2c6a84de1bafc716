package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	file := func(content string) string {
		path := filepath.Join(dir, fmt.Sprintf("pw%x%d", content[:min(len(content), 9)], len(content)))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Setenv("RANKD_TEST_SECRET", canary)
	t.Setenv("RANKD_TEST_EMPTY", "")
	for _, c := range []struct {
		name   string
		secret registry.Secret
		want   string
		err    string
	}{
		{"none", registry.Secret{}, "", ""},
		{"text", registry.NewSecret(canary), canary, ""},
		{"file", registry.Secret{File: file(canary)}, canary, ""},
		{"file with a line end", registry.Secret{File: file(canary + "\n")}, canary, ""},
		{"file of Windows", registry.Secret{File: file(canary + "\r\n")}, canary, ""},
		{"file with spaces and lines", registry.Secret{File: file(" a \n b \n")}, " a \n b ", ""},
		{"empty file", registry.Secret{File: file("")}, "", "the password is empty"},
		{"file with a line end only", registry.Secret{File: file("\n")}, "", "the password is empty"},
		{"huge file", registry.Secret{File: file(canary + string(make([]byte, 1<<20)))}, "", "larger than 4096 bytes"},
		{"named pipe without a writer", registry.Secret{File: pipe}, "", "is a named pipe, must be a regular file"},
		{"no such file", registry.Secret{File: filepath.Join(dir, "none")}, "", "no such file"},
		{"a folder", registry.Secret{File: dir}, "", "is a folder, must be a regular file"},
		{"environment", registry.Secret{Env: "RANKD_TEST_SECRET"}, canary, ""},
		{"empty variable", registry.Secret{Env: "RANKD_TEST_EMPTY"}, "", "the password is empty"},
		{"no such variable", registry.Secret{Env: "RANKD_TEST_NONE"}, "", "RANKD_TEST_NONE: the environment has no such variable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.secret.Read()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				assert.NotContains(t, err.Error(), canary)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.want, got.Reveal())
			assert.Equal(t, c.secret.IsZero(), got.IsZero())
		})
	}
}

// A password in a file is read again for each connection. An error names the setting.
func TestLoginReadsTheFileAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pw")
	for setting, login := range map[string]func(registry.Secret) func() (string, string, error){
		"password_file": func(s registry.Secret) func() (string, string, error) {
			return (&registry.Policy{Username: "u", Password: s}).Login()
		},
		"sentinel_password_file": func(s registry.Secret) func() (string, string, error) {
			return (&registry.Sentinel{Username: "u", Password: s}).Login()
		},
	} {
		assert.Nil(t, login(registry.NewSecret("fixed")))
		require.NoError(t, os.WriteFile(path, []byte("first"), 0o600))
		read, err := registry.Secret{File: path}.Read()
		require.NoError(t, err)
		ask := login(read)
		for _, want := range []string{"second", "third"} {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
			username, password, err := ask()
			require.NoError(t, err)
			assert.Equal(t, [2]string{"u", want}, [2]string{username, password})
		}
		require.NoError(t, os.Remove(path))
		_, _, err = ask()
		assert.EqualError(t, err, setting+" "+path+": no such file or directory")
	}
}

// In whatever form an endpoint is printed, its password stays hidden.
func TestSecretsAreHidden(t *testing.T) {
	t.Setenv("RANKD_TEST_SECRET", canary)
	file := filepath.Join(t.TempDir(), "pw")
	require.NoError(t, os.WriteFile(file, []byte(canary), 0o600))
	for _, policy := range []string{
		`policy.password = "` + canary + `"`, `policy.password_env = "RANKD_TEST_SECRET"`, fmt.Sprintf(`policy.password_file = %q`, file),
		`url = "redis://u:` + canary + `@h:1"`,
	} {
		where := "host = \"h\"\nport = 1\n"
		if policy[0] == 'u' {
			where = ""
		}
		reg, err := registry.Load(fstest.MapFS{
			"keys.toml":           {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")},
			"params.toml":         {},
			"endpoints.test.toml": {Data: []byte("[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\n" + where + policy)},
		}, "test")
		require.NoError(t, err)
		reg, err = reg.ReadSecrets()
		require.NoError(t, err)
		e := reg.Endpoints()[0]
		require.Equal(t, canary, e.Policy.Password.Reveal())

		var out bytes.Buffer
		require.NoError(t, reg.WriteText(&out))
		for _, v := range []any{reg, *e, e.Policy, e.Policy.Password, struct{ hidden registry.Secret }{e.Policy.Password}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%t"} {
				fmt.Fprintf(&out, verb, v)
			}
			require.NoError(t, json.NewEncoder(&out).Encode(v))
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		}
		assert.NotContains(t, out.String(), canary)
		assert.NotContains(t, out.String(), fmt.Sprintf("%x", canary))
		assert.Contains(t, out.String(), e.Policy.Password.String())
	}
}

// A table that does not load may contain a password in any place.
func TestErrorsOfTablesHideSecrets(t *testing.T) {
	const good = "[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\n"
	const there = good + "host = \"h\"\nport = 1\n"
	for text, want := range map[string]string{
		good + `url = "redis://u:c4n/4ryc4n4ry@h"`:                                                            "url: the URL is malformed",
		good + "url = \"rediss://u:c4n4ry@h?tls_ca=/a\"\ntls_ca = \"/b\"":                                     "tls_ca: the url has it, too",
		there + "tls_ca = \"/b\"\npolicy.password = \"c4n4ry\"":                                               "tls_ca needs TLS: rediss://, or tls = true in a table",
		there + "tls = true\ntls_cert = \"/b\"":                                                               "tls_cert and tls_key need each other",
		good + "tls = true\nurl = \"unix://u:c4n4ry@/run/r\"":                                                 "tls is only for kind redis, without a unix socket",
		good + `url = "h:1"`:                                                                                  "url begins with redis://, redis+cluster://, redis+sentinel:// or unix://",
		there + `url = "redis://h"`:                                                                           "url excludes host, port and embedded",
		good + "url = \"redis://:c4n4ry@h\"\npolicy.password = \"x\"":                                         "policy.password: the url has it, too",
		good + "url = \"redis://u:c4n4ry@h\"\npolicy.username = \"v\"":                                        "policy.username: the url has it, too",
		good + "url = \"redis://h/1\"\npolicy.database = 1":                                                   "policy.database: the url has it, too",
		good + "host = \"redis://u:c4n4ry@h\"\nport = 1":                                                      "a URL belongs in url",
		good + "host = \"u:c4n4ry@h\"\nport = 1":                                                              "a URL belongs in url",
		there + "policy.password = \"c4n4ry\"\npolicy.password_file = \"/f\"":                                 "policy.password_file: the value is given twice",
		there + "policy.password_env = \"A\"\npolicy.password_file = \"/f\"":                                  "policy.password_env: the value is given twice",
		there + "master = \"m\"\npolicy.sentinel_password = \"c4n4ry\"\npolicy.sentinel_password_env = \"A\"": "policy.sentinel_password_env: the value is given twice",
		there + "tls = true\ntls_cert = \"/b\"\ntls_key = \"\"\"\n-----BEGIN PRIVATE KEY-----\nc4n4ry\"\"\"":  "tls_key must be the name of a file",
		there + "tls = true\ntls_ca = \"-----BEGIN CERTIFICATE-----c4n4ry\"":                                  "tls_ca must be the name of a file",
		there + "policy.password_file = \"c4n4ry\\n\"":                                                        "policy.password_file must be the name of a file",
		good + "url = \"redis://h\"\ntls = true\ncluster = true\nmaster = \"m\"":                              "a master that sentinels know is of kind redis",
		good + "url = \"redis+sentinel://h/m\"\nmaster = \"n\"":                                               "master: the url has it, too",
		good + "url = \"redis+cluster://h\"\ncluster = false":                                                 "cluster: the url has it, too",
		there + "policy.password = c4n4ry":                                                                    "line 7",
		there + "policy.password = \"c4n4ry":                                                                  "line 7",
		there + "policy.password = 'c4n4ry\"":                                                                 "line 7",
		there + "policy.password = \"c4n4ry\" x":                                                              "line 7",
		there + "policy.password = \"c4n4ry\\q\"":                                                             "line 7",
		there + "policy.password = [\"c4n4ry\"]":                                                              "policy.password must be a string, not an array",
		there + "policy.password = 1\npolicy.password = \"c4n4ry\"":                                           "policy.password must be a string",
		there + "policy.password = \"c4n4ry\"\npolicy.password = \"c4n4ry\"":                                  "line 8: key password is already defined",
		strings.Replace(good, "redis", "http", 1) + "host = \"h\"\nport = 1\npolicy.password = \"c4n4ry\"":    "only for kind redis",
		strings.Replace(good, "redis", "http", 1) + "url = \"redis://u:c4n4ry@h\"":                            "url: the scheme must be http:// or https://",
	} {
		_, err := registry.Load(fstest.MapFS{
			"keys.toml":           {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")},
			"params.toml":         {},
			"endpoints.test.toml": {Data: []byte(text)},
		}, "test")
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), canary, text)
	}
}

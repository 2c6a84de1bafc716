package cmdline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHidePassword(t *testing.T) {
	for argument, want := range map[string]string{
		"redis://u:p@h:6379/0":                     "redis://***@h:6379/0",
		"--redis=redis://u:p@h":                    "--redis=redis://***@h",
		"redis://p@h":                              "redis://***@h",
		"redis://u:a=b@c d\"e@h":                   "redis://***@h",
		"u:p@h:6379":                               "***@h:6379",
		"--redis=u:a=b@h:6379":                     "--redis=***@h:6379",
		"redis://h?db=1&password=p&username=u":     "redis://h?db=1&password=***&username=u",
		"unix://u:p@/run/r.sock?password=q":        "unix://***@/run/r.sock?password=***",
		"redis://h?password_env=PW":                "redis://h?password_env=PW",
		"redis+sentinel://h/m?sentinel_password=p": "redis+sentinel://h/m?sentinel_password=***",
		"127.0.0.1:6379":                           "127.0.0.1:6379",
		"my@plan.json":                             "my@plan.json",
		"p@h:6379":                                 "***@h:6379",
		"":                                         "",
	} {
		assert.Equal(t, want, HidePassword(argument), argument)
	}
}

func TestHidePasswords(t *testing.T) {
	for message, want := range map[string]string{
		`--plan: redis://u:p@h: no such file`:                    `--plan: redis://***@h: no such file`,
		`not "--redis=redis://u:p@q@h", not redis://h2`:          `not "--redis=redis://***@h", not redis://h2`,
		`"redis://h?password=p" and unix:///r?db=1&password=q x`: `"redis://h?password=***" and unix:///r?db=1&password=*** x`,
		`plan a@b: redis 127.0.0.1:6379: timeout`:                `plan a@b: redis 127.0.0.1:6379: timeout`,
	} {
		assert.Equal(t, want, HidePasswords(message))
	}
}

func FuzzHidePassword(f *testing.F) {
	f.Add("--redis=redis://", "user", "pass")
	f.Add("", "", "a@b")
	f.Fuzz(func(t *testing.T, prefix, user, password string) {
		const canary = "c4n4ry"
		shown := HidePassword("redis://" + user + ":" + canary + password + "@h")
		assert.False(t, strings.Contains(strings.ReplaceAll(shown, user, ""), canary) && !strings.Contains(user, canary), shown)
	})
}

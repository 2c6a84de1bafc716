package registry_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/registry"
)

func TestHosts(t *testing.T) {
	label := strings.Repeat("x", 63)
	longest := strings.Join([]string{label, label, label, label[:61]}, ".")
	for _, c := range []struct {
		host string
		ok   bool
	}{
		{"h", true},
		{"localhost", true},
		{"redis-1.cache_main.example.com", true},
		{"example.com.", true},
		{"3com.example", true},
		{label, true},
		{longest, true},
		{longest + ".", true},
		{"127.0.0.1", true},
		{"::1", true},
		{"::ffff:10.0.0.1", true},
		{"fe80::1%eth0", true},

		{"a\x00b", false},
		{"\x00", false},
		{"fe80::1%a\x00b", false},
		{"a\x7fb", false},
		{"a\nb", false},
		{"a b", false},
		{" a", false},
		{"a/b", false},
		{"a:b", false},
		{"host:6379", false},
		{"user@host", false},
		{"[::1]", false},
		{"::1::2", false},
		{"fe80::1%", false},
		{"", false},
		{".", false},
		{"a..b", false},
		{".a", false},
		{"-a", false},
		{"a-.b", false},
		{"*.a", false},
		{"münchen.de", false},
		{"a\xffb", false},
		{"256.0.0.1", false},
		{"1.2.3", false},
		{"127.0.0.1.5", false},
		{"6379", false},
		{label + "x", false},
		{longest + "x", false},
	} {
		t.Run(fmt.Sprintf("%.20q of %d", c.host, len(c.host)), func(t *testing.T) {
			files := fstest.MapFS{
				"keys.toml":   {Data: []byte("[[key]]\nid = 1\nname = \"id\"\ntype = \"int\"\n")},
				"params.toml": {Data: nil},
				"endpoints.test.toml": {Data: fmt.Appendf(nil,
					"[[endpoint]]\nid = \"ep_1\"\nname = \"one\"\nkind = \"redis\"\nhost = %s\nport = 1\n", tomlString(c.host))},
			}
			reg, err := registry.Load(files, "test")
			if c.ok {
				require.NoError(t, err)
				assert.Equal(t, c.host, reg.Endpoints()[0].Host)
				return
			}
			require.Error(t, err)
			if !strings.Contains(c.host, "\xff") { // TOML itself refuses that.
				require.ErrorContains(t, err, "endpoints.test.toml: endpoint ep_1: host ")
				require.ErrorContains(t, err, "must be a host name or an IP address")
			}
			require.NotContains(t, err.Error(), "\x00")
		})
	}
}

// tomlString writes s as a basic string of TOML.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

package access

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	none, err := NewHosts(nil)
	require.NoError(t, err)
	some, err := NewHosts([]string{"rankd", "*.Example.com"})
	require.NoError(t, err)
	for _, c := range []struct {
		host, origin string
		none, some   bool
	}{
		{"localhost", "", true, true},
		{"LocalHost.:8081", "", true, true},
		{"127.0.0.1:8081", "", true, true},
		{"[::1]:8081", "", true, true},
		{"[::1]", "", true, true},
		{"192.0.2.1", "", true, true},
		{"", "", true, true},
		{"rankd", "", false, true},
		{"RANKD:80", "", false, true},
		{"api.example.com:80", "", false, true},
		{"example.com", "", false, false},
		{"evil.test", "", false, false},
		{"evil.test:8081", "", false, false},
		{"localhost.evil.test", "", false, false},
		{"127.0.0.1.evil.test", "", false, false},
		{"127.0.0.1 evil.test", "", false, false},
		{"[::1].evil.test", "", false, false},
		{"localhost", "http://localhost:3000", true, true},
		{"localhost", "http://127.0.0.1:3000", true, true},
		{"localhost", "http://[::1]:3000", true, true},
		{"localhost", "https://api.example.com", false, true},
		{"localhost", "http://evil.test", false, false},
		{"127.0.0.1", "http://evil.test:8081", false, false},
		{"127.0.0.1", "http://localhost@evil.test", false, false},
		{"localhost", "null", false, false},
		{"localhost", "://", false, false},
		{"localhost", "file://", false, false},
	} {
		assert.Equal(t, c.none, none.Check(c.host, c.origin) == nil, "%s from %s", c.host, c.origin)
		assert.Equal(t, c.some, some.Check(c.host, c.origin) == nil, "%s from %s, with names", c.host, c.origin)
	}
	assert.EqualError(t, none.Check("evil.test:80", ""), `the header Host has the name "evil.test:80", which --allow_hosts does not list`)
	assert.EqualError(t, none.Check("", "null"), `the header Origin has the name "null", which --allow_hosts does not list`)
	assert.NoError(t, (*Hosts)(nil).Check("evil.test", "null"))
	_, err = NewHosts([]string{"ok", "["})
	assert.ErrorContains(t, err, "hosts: pattern 2 is malformed")
}

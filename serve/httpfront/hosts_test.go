package httpfront

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/serve/access"
)

// TestHosts: a name or an origin that is not allowed is refused, whatever came before on the
// connection.
func TestHosts(t *testing.T) {
	hosts, err := access.NewHosts([]string{"rankd"})
	require.NoError(t, err)
	s := startFront(t, func(o *setup) { o.front.Hosts = hosts })
	client := dial(t, s.addr)
	for _, c := range []struct {
		headers string
		status  int
		target  string // other than the path
	}{
		{"Host: localhost", 200, ""},
		{"Host: localhost", 200, ""},
		{"Host: evil.test", 403, ""},
		{"Host: evil.test", 403, ""},
		{"Host: rankd:80", 200, ""},
		{"Host: rankd:80\r\nOrigin: http://evil.test", 403, ""},
		{"Host: rankd:80\r\nOrigin: null", 403, ""},
		{"Host: rankd:80\r\nOrigin: http://rankd", 200, ""},
		{"Host: 127.0.0.1\r\nOrigin: http://evil.test", 403, ""},
		{"Host: 127.0.0.1", 200, ""},
		{"Host: localhost", 403, "http://evil.test/v1/rank/one"}, // The header does not count.
		{"Host: evil.test", 200, "http://localhost/v1/rank/one"},
	} {
		client.send("POST " + cmp.Or(c.target, "/v1/rank/one") + " HTTP/1.1\r\n" + c.headers + "\r\nContent-Length: 14\r\n\r\n" + `{"user_id": 7}`)
		a := client.receive("POST")
		assert.Equal(t, c.status, a.StatusCode, c.headers)
		if c.status == 403 {
			assert.Contains(t, a.body, "which --allow_hosts does not list", c.headers)
		}
	}
}

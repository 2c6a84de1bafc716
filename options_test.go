package rankd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd"
)

func TestSplitAddr(t *testing.T) {
	for addr, want := range map[string]struct {
		host string
		port int
	}{
		"127.0.0.1:6379":          {"127.0.0.1", 6379},
		"[::1]:1":                 {"::1", 1},
		"my_redis.example.:65535": {"my_redis.example.", 65535},
	} {
		host, port, err := rankd.SplitAddr(addr)
		assert.NoError(t, err, addr)
		assert.Equal(t, want.host, host)
		assert.Equal(t, want.port, port)
	}
	for addr, want := range map[string]string{
		"":                                "host or port is missing",
		"localhost":                       "host or port is missing",
		"::1:6379":                        "host or port is missing",
		":6379":                           "port is not a number from 1 to 65535",
		"h:0":                             "port is not a number from 1 to 65535",
		"h:65536":                         "port is not a number from 1 to 65535",
		"h:redis":                         "port is not a number from 1 to 65535",
		"a\x00b:6379":                     "must be a host name or an IP address",
		"a b:6379":                        "must be a host name or an IP address",
		"256.0.0.1:6379":                  "must be a host name or an IP address",
		strings.Repeat("x", 64) + ":6379": "must be a host name or an IP address",
	} {
		_, _, err := rankd.SplitAddr(addr)
		assert.ErrorContains(t, err, want, addr)
	}
}

func TestErrorsOfOptionsQuoteLittle(t *testing.T) {
	_, err := rankd.Open(rankd.Options{Model: rankd.Model(strings.Repeat("x", 1<<20)), Redis: strings.Repeat("y", 1<<20)})
	assert.ErrorContains(t, err, `Model must be reactor, pool or sequential, not "xxx`)
	assert.ErrorContains(t, err, "Redis must be host:port, not \"yyy")
	assert.Less(t, len(err.Error()), 700)
}

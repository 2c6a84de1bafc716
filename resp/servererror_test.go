package resp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A server may answer with an error of 64 KiB. Texts that quote it stay short.
func TestServerErrorIsShort(t *testing.T) {
	err := &ServerError{Message: "ERR " + strings.Repeat("x", 64<<10)}
	assert.EqualError(t, err, "ERR "+strings.Repeat("x", 196)+"… (65540 bytes)")
	assert.Equal(t, "ERR", err.Code())
	assert.EqualError(t, &ServerError{Message: "ERR a\tb\x1b"}, `ERR a\tb\x1b`)
}

// The text of an error that concerns the whole server says what it means and what to do.
func TestServerErrorTellsItsMeaning(t *testing.T) {
	for message, want := range map[string]string{
		"LOADING Redis is loading the dataset in memory":          "ask again later",
		"READONLY You can't write against a read only replica.":   "the address of its primary",
		"MASTERDOWN Link with MASTER is down":                     "the address of the primary",
		"TRYAGAIN Multiple keys request during rehashing of slot": "ask again",
		"CLUSTERDOWN Hash slot not served":                        "see CLUSTER INFO",
		"MOVED 3999 127.0.0.1:6381":                               "name the cluster as redis+cluster://host:port",
		"ASK 3999 127.0.0.1:6381":                                 "name the cluster as redis+cluster://host:port",
		"NOAUTH Authentication required.":                         "password_file or password_env",
		"WRONGPASS invalid username-password pair":                "see ACL LIST",
		"NOPERM this user has no permissions to access some keys": "see ACL LIST",
	} {
		err := &ServerError{Message: message}
		assert.Contains(t, err.Error(), message+" (")
		assert.Contains(t, err.Error(), want)
	}
	assert.ErrorContains(t, &ServerError{Message: "NOAUTH x", Sentinel: true}, "with sentinel_password_file or sentinel_password_env")
	for _, message := range []string{"ERR x", "WRONGTYPE x", "LOADINGS", "", "moved 1 2"} {
		assert.EqualError(t, &ServerError{Message: message}, message)
	}
}

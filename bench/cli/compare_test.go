package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseUsers(t *testing.T) {
	ids, err := parseUsers("5,1-3,4294967295")
	require.NoError(t, err)
	assert.Equal(t, []int64{5, 1, 2, 3, 1<<32 - 1}, ids)
	for _, bad := range []string{"", "0", "a", "3-1", "1-", "-1", "1,,2", "4294967296", "1-100001"} {
		_, err := parseUsers(bad)
		assert.Error(t, err, bad)
	}
}

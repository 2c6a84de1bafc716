package load

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseUsers(t *testing.T) {
	for text, want := range map[string]struct {
		ids   []int64
		words string
	}{
		"1":                {[]int64{1}, "one user (1)"},
		"7,7":              {[]int64{7, 7}, "one user (7,7)"},
		"5,1-3,4294967295": {[]int64{5, 1, 2, 3, 1<<32 - 1}, "5 users in turn (5,1-3,4294967295)"},
	} {
		u, err := ParseUsers(text, "")
		require.NoError(t, err)
		assert.Equal(t, want.ids, u.IDs)
		assert.Equal(t, want.words, u.String())
	}
	for text, want := range map[string]Users{
		"u-{1,3-4}":            {IDs: []int64{1, 3, 4}, Different: 3, Name: "u-{}"},
		"{7}":                  {IDs: []int64{7}, Different: 1, Name: "{}"},
		"zipf:2,a,{9}@example": {IDs: slices.Repeat([]int64{9}, zipfDraws), Different: 1, Name: "a,{}@example"},
	} {
		want.Spec = text
		u, err := ParseUsers(text, "")
		require.NoError(t, err)
		assert.Equal(t, want, u)
	}
	for _, text := range []string{
		"ffe5c79b-64e1-4a3c-9f8b-1d2e3f405162,12345678-1234-1234-1234-123456789012", "u-1", "a", "a,7,a",
	} {
		u, err := ParseUsers(text, "")
		require.NoError(t, err, text)
		want := strings.Split(text, ",")
		for i, id := range want {
			assert.Equal(t, `{"user_id":"`+id+`"}`, string(u.Requests[i]))
		}
		assert.Len(t, u.IDs, len(want))
		assert.Equal(t, int64(len(want)), u.IDs[len(want)-1])
		assert.Equal(t, min(2, len(want)), u.Different)
	}
	u, err := ParseUsers("zipf:2,a,b", "")
	require.NoError(t, err)
	assert.Len(t, u.IDs, zipfDraws)
	assert.Equal(t, 2, u.Different)
	assert.Equal(t, int64(2), slices.Max(u.IDs))
	for _, bad := range []string{
		"a,1-3", "a,,b", "a,", "zipf:1.1,a,1-3", "u-{1", "u-1}", "u-{}", "{1}{2}", "{{1}}", "{1}}",
		"", "0", "3-1", "1-", "-1", "1,,2", "4294967296", "1-100001", "zipf", "zipf:", "zipf:1.1", "zipf:1,1-9", "zipf:x,1-9", "zipf:NaN,1-9",
		"zipf:11,1-9", "zipf:1.1,", "zipf:-2,1-9", "ZIPF:1.1,1-9",
	} {
		_, err := ParseUsers(bad, "")
		assert.Error(t, err, bad)
	}
}

// A zipf without a list draws from all users, if they are known.
func TestZipfOfAllUsers(t *testing.T) {
	want, err := ParseUsers("zipf:1.1,1-1000", "")
	require.NoError(t, err)
	got, err := ParseUsers("zipf:1.1", "1-1000")
	require.NoError(t, err)
	assert.Equal(t, want, got)
	got, err = ParseUsers("3,5", "1-1000")
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 5}, got.IDs)
	_, err = ParseUsers("zipf:", "1-1000")
	assert.Error(t, err)
}

// The shares of a zipf follow its law, and the draws are the same each time.
func TestZipf(t *testing.T) {
	const users, exponent = 1000, 1.1
	u, err := ParseUsers("zipf:1.1,1-1000", "")
	require.NoError(t, err)
	require.Len(t, u.IDs, zipfDraws)
	again, _ := ParseUsers("zipf:1.1,1-1000", "")
	assert.Equal(t, u, again)
	sum := 0.0
	for k := range users {
		sum += math.Pow(float64(k+1), -exponent)
	}
	count := make(map[int64]int)
	for _, id := range u.IDs {
		count[id]++
	}
	for _, k := range []int64{1, 2, 3, 10, 100} {
		want := math.Pow(float64(k), -exponent) / sum * zipfDraws
		assert.InDelta(t, want, count[k], 6*math.Sqrt(want), "user %d", k)
	}
	assert.Equal(t, len(count), u.Different)
	assert.Greater(t, u.Different, users*9/10)
	assert.LessOrEqual(t, slices.Max(u.IDs), int64(users))
	assert.Contains(t, u.String(), "users by popularity (zipf:1.1,1-1000)")

	one, err := ParseUsers("zipf:2,5-5", "")
	require.NoError(t, err)
	assert.Equal(t, "one user (zipf:2,5-5)", one.String())
}

func FuzzParseUsers(f *testing.F) {
	for _, seed := range []string{"1", "1,5-8", "zipf:1.1,1-1000", "zipf:9,3,4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUsers(text, "")
		if err != nil {
			return
		}
		require.NotEmpty(t, u.IDs)
		require.LessOrEqual(t, len(u.IDs), UsersMax)
		require.True(t, u.Different > 0 && u.Different <= len(u.IDs))
		require.GreaterOrEqual(t, slices.Min(u.IDs), int64(1))
		require.LessOrEqual(t, slices.Max(u.IDs), int64(userMax))
	})
}

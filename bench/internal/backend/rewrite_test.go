package backend

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// values returns the replies to commands, each with its parts.
func values(t *testing.T, addr string, commands ...[]string) (texts [][]string) {
	require.NoError(t, devredis.WithClient(t.Context(), addr, func(client *blocking.Client) error {
		return exchange(client, commands, func(_ int, r resp.Reply) {
			parts := []string{string(r.Bytes())}
			for part := range r.All() {
				parts = append(parts, string(part.Bytes()))
			}
			texts = append(texts, parts)
		})
	}))
	return texts
}

// A key of any type is written and has the same value afterwards. Redis reports the write to
// those who follow the key.
func TestRewriter(t *testing.T) {
	testworld.StartRedis(t) // skips where there is none
	keys := []string{"hash", "list", "text", "set", "sorted", "stream"}
	b, err := Start(t.Context(), Options{Server: os.Getenv("RANKD_REDIS_SERVER"), Data: func(ctx context.Context, server string) error {
		return devredis.Write(ctx, server, func(write func(...string) error) error {
			for _, command := range [][]string{
				{"HSET", "hash", "a", "1", "b", "2"}, {"RPUSH", "list", "x", "y"}, {"SET", "text", "\x00\r\n"}, {"SADD", "set", "1", "2"},
				{"ZADD", "sorted", "1.5", "one", "2", "two"}, {"XADD", "stream", "1-1", "field", "value"},
			} {
				if err := write(command...); err != nil {
					return err
				}
			}
			return nil
		})
	}})
	require.NoError(t, err)
	defer b.Close()
	all := [][]string{{"HGETALL", "hash"}, {"LRANGE", "list", "0", "-1"}, {"GET", "text"}, {"SMEMBERS", "set"}, {"ZRANGE", "sorted", "0", "-1", "WITHSCORES"}, {"XLEN", "stream"}}
	before := values(t, b.Addr(0), all...)
	w, err := b.NewRewriter(t.Context())
	require.NoError(t, err)

	written := make(map[string]bool)
	require.NoError(t, devredis.WithClient(t.Context(), b.Addr(0), func(client *blocking.Client) error {
		for _, key := range keys {
			// A transaction that watches a key does nothing if the key was written, with the
			// same value or another.
			var none bool
			require.NoError(t, exchange(client, [][]string{{"WATCH", key}}, func(int, resp.Reply) {}))
			i := slices.IndexFunc(w.writes, func(c []string) bool { return c[1] == key })
			values(t, b.Addr(0), w.writes[i])
			require.NoError(t, exchange(client, [][]string{{"MULTI"}, {"EXISTS", key}, {"EXEC"}}, func(i int, r resp.Reply) { none = r.Kind() == resp.Null }))
			written[key] = none
		}
		return nil
	}))
	for _, key := range keys {
		assert.True(t, written[key], key)
	}
	assert.Equal(t, before, values(t, b.Addr(0), all...))
}

func TestTheRateIsReached(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // the embedded server
	b, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	defer b.Close()
	w, err := b.NewRewriter(t.Context())
	require.NoError(t, err)
	assert.Len(t, w.writes, 4000, "a hash and three lists for each of 1,000 users")
	end := w.Begin(t.Context(), 2000)
	began := time.Now()
	require.Eventually(t, func() bool { return time.Since(began) > 300*time.Millisecond }, time.Minute, time.Millisecond)
	perSecond, err := end()
	require.NoError(t, err)
	assert.Positive(t, perSecond)
	assert.LessOrEqual(t, perSecond, 2000.0, "never more than asked for")

	end = w.Begin(t.Context(), 1_000_000_000)
	require.Eventually(t, func() bool { return time.Since(began) > 400*time.Millisecond }, time.Minute, time.Millisecond)
	perSecond, err = end()
	require.NoError(t, err)
	assert.Less(t, perSecond, 1_000_001.0, "a thousand at once, a thousand times a second")

	b.Close()
	require.Eventually(t, func() bool {
		end, began := w.Begin(t.Context(), 1_000_000), time.Now()
		require.Eventually(t, func() bool { return time.Since(began) > 5*time.Millisecond }, time.Minute, time.Millisecond)
		_, err := end()
		return err != nil
	}, time.Minute, time.Millisecond)
	_, err = b.NewRewriter(t.Context())
	assert.Error(t, err)
}

func TestNothingToWrite(t *testing.T) {
	b, err := Start(t.Context(), Options{Addr: testworld.StartRedis(t).Addr})
	require.NoError(t, err)
	_, err = b.NewRewriter(t.Context())
	assert.ErrorContains(t, err, "no keys")
}

package devredis

import (
	"context"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) { looptest.Main(m) }

func TestDataSetIsPlausible(t *testing.T) {
	inCountry := make(map[string]int)
	for id := 1; id <= Users; id++ {
		u := makeUser(id)
		inCountry[u.country]++
		for name, list := range map[string][]string{"follow": u.follow, "recommendation": u.recommendations} {
			assert.GreaterOrEqual(t, len(list), listMin, "%s:%d", name, id)
			assert.LessOrEqual(t, len(list), listMax, "%s:%d", name, id)
			assert.NotContains(t, list, strconv.Itoa(id), "%s:%d names its owner", name, id)
			for _, entry := range list {
				other, err := strconv.Atoi(entry)
				require.NoError(t, err)
				assert.True(t, 1 <= other && other <= Users, "%s:%d: %d is not a user", name, id, other)
			}
			distinct := slices.Compact(slices.Sorted(slices.Values(list)))
			assert.Len(t, distinct, len(list), "%s:%d repeats an entry", name, id)
		}
		assert.GreaterOrEqual(t, len(u.media), listMin)
		assert.LessOrEqual(t, len(u.media), mediaMax)
	}
	assert.InDelta(t, 330, inCountry["US"], 50, "a third in the US")
	assert.InDelta(t, 50, inCountry[""], 25, "one in twenty without country")
	assert.Len(t, inCountry, len(countries)+1)
}

func TestMediaBelongToOneUser(t *testing.T) {
	owner := make(map[string]int)
	for id := 1; id <= Users; id++ {
		for _, m := range makeUser(id).media {
			if first, taken := owner[m]; taken {
				t.Errorf("media %s belongs to users %d and %d", m, first, id)
			}
			owner[m] = id
		}
	}
}

func TestUserOneSuitsTheExamplePlans(t *testing.T) {
	u := makeUser(1)
	assert.Equal(t, "US", u.country)
	assert.Len(t, u.follow, listMax)
	assert.Len(t, u.recommendations, listMax)
	inUS := 0
	for _, f := range u.follow[:10] {
		id, err := strconv.Atoi(f)
		require.NoError(t, err)
		if country(id) == "US" {
			inUS++
		}
	}
	assert.Positive(t, inUS, "the regex plan keeps someone of the first ten")
}

func TestEmbeddedAndLoadedServersHoldTheSame(t *testing.T) {
	s, err := Start()
	require.NoError(t, err)
	defer s.Close()
	other := miniredis.RunT(t)
	_, err = other.RPush("follow:1", "stale")
	require.NoError(t, err)
	require.NoError(t, Load(t.Context(), other.Addr()))
	assert.Equal(t, content(t, s.redis), content(t, other))
	assert.Len(t, s.redis.Keys(), 4*Users)

	host, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
	assert.Equal(t, strconv.Itoa(s.Port()), port)
}

// content returns all keys with their values. (miniredis's own Dump takes seconds for so many
// keys.)
func content(t *testing.T, redis *miniredis.Miniredis) map[string][]string {
	keys := make(map[string][]string)
	for _, key := range redis.Keys() {
		if redis.Type(key) == "list" {
			list, err := redis.List(key)
			require.NoError(t, err)
			keys[key] = list
			continue
		}
		fields, err := redis.HKeys(key)
		require.NoError(t, err)
		slices.Sort(fields)
		for _, f := range fields {
			keys[key] = append(keys[key], f, redis.HGet(key, f))
		}
	}
	return keys
}

func TestLoadErrors(t *testing.T) {
	t.Run("Refused", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := l.Addr().String()
		require.NoError(t, l.Close())
		assert.ErrorContains(t, Load(t.Context(), addr), addr)
	})
	t.Run("ErrorReply", func(t *testing.T) {
		locked := miniredis.RunT(t)
		locked.RequireAuth("secret")
		assert.ErrorContains(t, Load(t.Context(), locked.Addr()), "NOAUTH")
	})
	t.Run("Cancelled", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
		require.NoError(t, err)
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if conn, err := l.Accept(); err == nil {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1))
				cancel()
			}
		}()
		assert.ErrorIs(t, Load(ctx, l.Addr().String()), context.Canceled)
	})
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start()
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

package peers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseSpec(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Spec
	}{
		{"rueidis", Spec{Rueidis: &RueidisConfig{}}},
		{"go-redis", Spec{GoRedis: &GoRedisConfig{}}},
		{"rueidis:conns=4:delay=50us", Spec{Rueidis: &RueidisConfig{Conns: 4, FlushDelay: 50 * time.Microsecond}}},
		{"go-redis:pool=7", Spec{GoRedis: &GoRedisConfig{Pool: 7}}},
		{"rueidis-cache", Spec{Rueidis: &RueidisConfig{Cache: true}}},
		{"rueidis-cache:ttl=5s:bytes=1048576:broadcast=true", Spec{
			Rueidis: &RueidisConfig{Cache: true, CacheTTL: 5 * time.Second, CacheBytes: 1 << 20, Broadcast: true},
		}},
		{"go-redis:procs=3", Spec{Procs: 3, GoRedis: &GoRedisConfig{}}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := ParseSpec(tc.text)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for _, tc := range []struct{ text, says string }{
		{"", "neither rueidis, rueidis-cache nor go-redis"},
		{"rueidis:ttl=1s", `no setting "ttl"`},
		{"rueidis-cache:conns=2", `no setting "conns"`},
		{"redigo", `"redigo"`},
		{"rueidis:", "nothing after the colon"},
		{"go-redis:conns=10", `no setting "conns"`},
		{"rueidis-cache:broadcast=perhaps", "invalid syntax"},
		{"rueidis:conns=-1", "invalid syntax"},
		{"rueidis:conns=3", "power of two"},
		{"rueidis:conns=512", "power of two"},
		{"rueidis:conns", "invalid syntax"},
		{"rueidis:delay=20", "missing unit"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			_, err := ParseSpec(tc.text)
			require.ErrorIs(t, err, ErrSpec)
			assert.ErrorContains(t, err, tc.says)
		})
	}
}

func TestDefaultProcs(t *testing.T) {
	rueidis, goRedis := Spec{Rueidis: &RueidisConfig{}}, Spec{GoRedis: &GoRedisConfig{}}
	assert.Equal(t, 1, rueidis.DefaultProcs(1))
	assert.Equal(t, 1, rueidis.DefaultProcs(2))
	assert.Equal(t, 7, rueidis.DefaultProcs(8))
	assert.Equal(t, 8, goRedis.DefaultProcs(8))
}

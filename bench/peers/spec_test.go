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
		{"rueidis:waves=groups:conns=4:delay=50us:threshold=9:always=true:ring=12:buffer=4096", Spec{
			Waves: Groups,
			Rueidis: &RueidisConfig{Conns: 4, FlushDelay: 50 * time.Microsecond, Threshold: 9, AlwaysPipelining: true,
				RingScale: 12, BufferBytes: 4096},
		}},
		{"go-redis:waves=fused:mode=auto:pool=7:batches=2:threshold=3:batch=500:delay=-1us:buffer=64", Spec{
			GoRedis: &GoRedisConfig{Mode: GoRedisAuto, Pool: 7, Batches: 2, Threshold: 3, BatchMax: 500,
				FlushDelay: -time.Microsecond, BufferBytes: 64},
		}},
		{"rueidis-cache", Spec{Rueidis: &RueidisConfig{Cache: true}}},
		{"rueidis-cache:ttl=5s:bytes=1048576:broadcast=true", Spec{
			Rueidis: &RueidisConfig{Cache: true, CacheTTL: 5 * time.Second, CacheBytes: 1 << 20, Broadcast: true},
		}},
		{"go-redis:procs=3", Spec{Procs: 3, GoRedis: &GoRedisConfig{}}},
		{"go-redis:mode=fullduplex", Spec{GoRedis: &GoRedisConfig{Mode: GoRedisFullDuplex}}},
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
		{"rueidis:mode=auto", `no setting "mode"`},
		{"go-redis:ring=10", `no setting "ring"`},
		{"go-redis:mode=fast", "want one of adaptive, pipeline, fullduplex, auto"},
		{"rueidis:conns=-1", "invalid syntax"},
		{"rueidis:conns=3", "power of two"},
		{"rueidis:conns=512", "power of two"},
		{"rueidis:conns", "invalid syntax"},
		{"rueidis:delay=20", "missing unit"},
		{"rueidis:always=perhaps", "invalid syntax"},
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

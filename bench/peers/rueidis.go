package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/bits"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// RueidisConfig configures a store on rueidis. The zero value has the settings found to be
// fastest; see README.md. Immutable.
type RueidisConfig struct {
	// Conns is the number of connections, a power of two, that waves are pipelined on at once.
	// Zero means 2.
	Conns int
	// FlushDelay is how long the other connection waits for more waves before each flush
	// (MaxFlushDelay). One system call then serves many requests, but a single request waits in
	// vain. Zero means 20 µs; a negative value means that the client has none.
	FlushDelay time.Duration
	// Cache keeps replies in memory, except those of fresh commands, until the server reports
	// that their keys have changed. It takes one connection, since each connection has its own
	// cache. So Conns and FlushDelay have no effect.
	Cache bool
	// CacheTTL is how long a reply is kept at most. Zero means a minute, as for the engine.
	CacheTTL time.Duration
	// CacheBytes bounds what is kept, as the library counts it. Zero means 512 MiB, which holds
	// what the feed reads. The library's default of 128 MiB does not.
	CacheBytes int
	// Broadcast has the server report changes of all keys, not only of those that were read.
	Broadcast bool
}

func (c RueidisConfig) withDefaults() RueidisConfig {
	c.Conns, c.FlushDelay = cmp.Or(c.Conns, 2), cmp.Or(c.FlushDelay, 20*time.Microsecond)
	if c.Cache {
		c.Conns, c.FlushDelay = 1, -1
		c.CacheTTL, c.CacheBytes = cmp.Or(c.CacheTTL, time.Minute), cmp.Or(c.CacheBytes, 512<<20)
	}
	return c
}

// manyWaves is the number of waves in flight from which they go to the connection that waits.
const manyWaves = 16

// rueidisStore pipelines the batches of all requests on a few connections. Immutable once
// built, except for its counters.
type rueidisStore struct {
	prompt  rueidis.Client // flushes at once
	patient rueidis.Client // waits for more; nil if not wanted
	ttl     time.Duration  // of what prompt keeps; 0: it keeps nothing
	waves   atomic.Int64   // in flight
	meter   meter
}

// OpenRueidis connects to the server at addr, "host:port", or to a cluster: see clusterOf.
func OpenRueidis(addr string, cfg RueidisConfig) (Store, error) {
	cfg = cfg.withDefaults()
	s := &rueidisStore{ttl: cfg.CacheTTL}
	s.meter.keeps = cfg.Cache
	addrs, cluster := clusterOf(addr)
	options := rueidis.ClientOption{
		InitAddress: addrs,
		// The client does not ask a single server whether it is a cluster.
		ForceSingleClient: !cluster,
		PipelineMultiplex: multiplex(cfg.Conns),
		// Client-side caching answers from memory what an engine without a cache asks Redis for.
		DisableCache:      !cfg.Cache,
		CacheSizeEachConn: cfg.CacheBytes,
		// A failure is reported at once, as in the engine.
		DisableRetry: true,
		// In RESP2 a hash is an array, which can be walked. In RESP3 it is a map, for which this
		// library builds a Go map per user. A cache needs RESP3.
		AlwaysRESP2: !cfg.Cache,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return s.meter.count(conn), nil
		},
	}
	if cfg.Broadcast {
		options.ClientTrackingOptions = []string{"BCAST"}
	}
	var err error
	if s.prompt, err = rueidis.NewClient(options); err != nil {
		return nil, fmt.Errorf("rueidis: %w", err)
	}
	if cfg.FlushDelay > 0 {
		options.PipelineMultiplex, options.MaxFlushDelay = multiplex(1), cfg.FlushDelay
		if s.patient, err = rueidis.NewClient(options); err != nil {
			s.prompt.Close()
			return nil, fmt.Errorf("rueidis: %w", err)
		}
	}
	return s, nil
}

// multiplex returns the option PipelineMultiplex for a number of connections. This is the
// number's logarithm. But 0 would leave the number to the library.
func multiplex(conns int) int {
	if conns == 1 {
		return -1
	}
	return bits.Len(uint(conns)) - 1
}

// Read implements Store.
func (s *rueidisStore) Read(ctx context.Context, b *Batch) {
	if s.ttl > 0 && len(b.commands) > 0 && !b.commands[0].fresh {
		s.readKept(ctx, b)
		return
	}
	text, word := b.keys.text(), 0
	for i := range b.commands {
		c := &b.commands[i]
		built := s.prompt.B().Arbitrary(c.name)
		for j := range c.words {
			start, end := b.keys.bounds(word)
			if word++; j == 0 {
				built = built.Keys(text[start:end]) // which chooses the node of a cluster
				continue
			}
			built = built.Args(text[start:end])
		}
		b.completed = append(b.completed, built.Args(c.args...).Build())
	}
	replies := s.do(ctx, b.completed)
	for i := range replies {
		entries, err := replies[i].ToArray()
		for j := range entries {
			err = cmp.Or(err, b.appendText(&entries[j]))
		}
		b.answered(b.commands[i].failed(err))
	}
}

// userFields are what a kept user is read for.
var userFields = []string{countryField}

// readKept reads a wave without fresh commands. What is in memory comes from there. There is
// one DoMultiCache for the whole wave, without PTTL, MULTI and EXEC around each command. A user
// is read by HMGET, since this library builds a Go map at each hit of a kept hash.
func (s *rueidisStore) readKept(ctx context.Context, b *Batch) {
	text := b.keys.text()
	for i := range b.commands {
		c := &b.commands[i]
		name, args := c.name, c.args
		if name == "HGETALL" {
			name, args = "HMGET", userFields
		}
		start, end := b.keys.bounds(i)
		built := s.prompt.B().Arbitrary(name).Keys(text[start:end]).Args(args...).Build()
		b.cacheable = append(b.cacheable, rueidis.CT(rueidis.Cacheable(built).ToStaticTTL(), s.ttl))
	}
	replies := s.prompt.DoMultiCache(ctx, b.cacheable...)
	hits := 0
	for i := range replies {
		if replies[i].IsCacheHit() {
			hits++
		}
		entries, err := replies[i].ToArray()
		if b.commands[i].name == "HGETALL" && len(entries) == len(userFields) {
			if entries[0].IsNil() {
				entries = nil
			} else {
				b.replies = append(b.replies, Text{Value: countryField, Known: true})
			}
		}
		for j := range entries {
			if entries[j].IsArray() { // a member and its score
				pair, _ := entries[j].ToArray()
				for k := range pair {
					err = cmp.Or(err, b.appendText(&pair[k]))
				}
				continue
			}
			err = cmp.Or(err, b.appendText(&entries[j]))
		}
		b.answered(b.commands[i].failed(err))
	}
	s.meter.hits.Add(uint64(hits))
	s.meter.commands.Add(uint64(len(replies) - hits))
}

// appendText appends an entry of a reply.
func (b *Batch) appendText(m *rueidis.RedisMessage) error {
	value, err := m.ToString()
	null := err != nil && rueidis.IsRedisNil(err)
	b.replies = append(b.replies, Text{Value: value, Known: !null})
	if null {
		return nil
	}
	return err
}

// do sends a wave.
func (s *rueidisStore) do(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	if len(commands) == 0 {
		return nil
	}
	s.meter.commands.Add(uint64(len(commands)))
	defer s.waves.Add(-1)
	client := s.prompt
	if s.waves.Add(1) >= manyWaves && len(commands) < wideWave && s.patient != nil {
		client = s.patient
	}
	if len(commands) == 1 { // spares the bookkeeping of a batch
		return []rueidis.RedisResult{client.Do(ctx, commands[0])}
	}
	return client.DoMulti(ctx, commands...)
}

// Traffic implements Store.
func (s *rueidisStore) Traffic() Traffic { return s.meter.traffic() }

// Close implements Store.
func (s *rueidisStore) Close() {
	s.prompt.Close()
	if s.patient != nil {
		s.patient.Close()
	}
}

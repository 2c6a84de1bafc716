package peers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// GoRedisConfig configures a store on go-redis. The zero value has the settings found to be
// fastest; see README.md. Immutable.
type GoRedisConfig struct {
	// Pool bounds the connections of pipelines. Zero means 64.
	Pool int
}

// autoWaves is the number of waves in flight from which the auto-pipeliner takes them. It makes batches of the commands
// of many requests, which is cheaper for all of them; a single request would wait for others in vain, and goes out as a
// pipeline on a connection of the pool. A wide wave always does.
const autoWaves = 12

// goRedisStore is immutable once built, except for its counters.
type goRedisStore struct {
	client redis.UniversalClient
	auto   *redis.AutoPipeliner // nil until it is open
	waves  atomic.Int64         // in flight
	meter  meter
}

// OpenGoRedis connects to the server at addr, "host:port", or to a cluster: see clusterOf.
func OpenGoRedis(addr string, cfg GoRedisConfig) (Store, error) {
	pool, s := cmp.Or(cfg.Pool, 64), new(goRedisStore)
	dialer := net.Dialer{Timeout: 5 * time.Second}
	addrs, cluster := clusterOf(addr)
	s.client = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, IsClusterMode: cluster,
		// In RESP2 a hash is an array, which can be read as a slice. In RESP3 it is a map, for
		// which this library builds a Go map per user.
		Protocol: 2,
		PoolSize: pool,
		// Pipelines have their own pool, with 10 connections by default. Pipelines take
		// connections of the other pool when these are in use. So this pool is the one to size.
		PipelinePoolSize: pool,
		// -2 sets no deadline on the socket, instead of one before each read and write. The
		// server of a benchmark runs on the same machine.
		ReadTimeout:  -2,
		WriteTimeout: -2,
		// A failure is reported at once, as in the engine.
		DialerRetries: 1,
		MaxRetries:    -1,
		// The client sends nothing at connection time that a plain Redis does not support.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return s.meter.count(conn), nil
		},
	})
	var err error
	// The library's own rule waits for callers that it expects back, often in vain, since the next wave has another size.
	s.auto, err = s.client.AsyncAutoPipelineWithOptions(&redis.AutoPipelineOptions{MaxConcurrentBatches: 1, MaxFlushDelay: time.Microsecond})
	if err == nil {
		err = s.client.Ping(context.Background()).Err()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("go-redis: %w", err)
	}
	return s, nil
}

// Read implements Store. Concat_plan reads no null.
func (s *goRedisStore) Read(ctx context.Context, b *Batch) {
	// All commands share one array of arguments and one array of keys. Words are passed by
	// pointer, because a string in an interface would cost another allocation each.
	text, words := b.keys.text(), len(b.commands)
	for i := range b.commands {
		words += b.commands[i].words + len(b.commands[i].args)
	}
	names, args := make([]string, len(b.keys.ends)), make([]any, 0, words)
	for i := range names {
		start, end := b.keys.bounds(i)
		names[i] = text[start:end]
	}
	for i := range b.commands {
		c, first := &b.commands[i], len(args)
		args = append(args, &c.name)
		for j := range c.words {
			args = append(args, &names[j])
		}
		names = names[c.words:]
		for j := range c.args {
			args = append(args, &c.args[j])
		}
		b.cmders = append(b.cmders, redis.NewStringSliceCmd(ctx, args[first:len(args):len(args)]...))
	}
	s.do(ctx, b.cmders)
	for i, reply := range b.cmders {
		c := &b.commands[i]
		err := reply.Err() // Do waits. Every command must end, because the memory is used again.
		for _, value := range reply.(*redis.StringSliceCmd).Val() {
			b.replies = append(b.replies, Text{Value: value, Known: true})
		}
		b.answered(c.failed(err))
	}
}

// do sends a wave. Each command has its error.
func (s *goRedisStore) do(ctx context.Context, commands []redis.Cmder) {
	if len(commands) == 0 {
		return
	}
	s.meter.commands.Add(uint64(len(commands)))
	defer s.waves.Add(-1)
	if s.waves.Add(1) >= autoWaves && len(commands) < wideWave {
		for _, c := range commands {
			s.auto.Submit(ctx, c)
		}
		return
	}
	pipe := s.client.Pipeline()
	_ = pipe.BatchProcess(ctx, commands...) // never fails
	_, _ = pipe.Exec(ctx)
}

// Traffic implements Store.
func (s *goRedisStore) Traffic() Traffic { return s.meter.traffic() }

// Close implements Store.
func (s *goRedisStore) Close() {
	if s.auto != nil {
		_ = s.auto.Close() // nothing is in flight that could be lost
	}
	_ = s.client.Close()
}

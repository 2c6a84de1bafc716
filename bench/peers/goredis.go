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

// GoRedisMode says how go-redis sends a wave.
type GoRedisMode uint8

// The modes.
const (
	// GoRedisAdaptive is GoRedisPipeline while few waves are in flight, and GoRedisAuto beyond
	// that. A batch with the commands of many requests is cheaper for all of them. But a single
	// request would wait for others in vain. A wide wave is always a pipeline.
	GoRedisAdaptive GoRedisMode = iota
	// GoRedisPipeline sends each wave as a pipeline on its own connection, from a pool.
	GoRedisPipeline
	// GoRedisFullDuplex sends the waves of all requests on one connection, without
	// waiting for the replies to earlier ones: auto-pipelining as of v9.22.
	GoRedisFullDuplex
	// GoRedisAuto hands each command to the auto-pipeliner. That makes batches of the commands
	// of all requests, with Conns of them in flight.
	GoRedisAuto
)

// GoRedisConfig configures a store on go-redis. The zero value has the settings found to be
// fastest; see README.md. Immutable.
type GoRedisConfig struct {
	Mode GoRedisMode
	// Pool bounds the connections of pipelines. Zero means 64.
	Pool int
	// Batches is the number of the auto-pipeliner's batches in flight, each on its own
	// connection. Zero means 1.
	Batches int
	// Threshold is the number of waves in flight from which GoRedisAdaptive leaves them to
	// the auto-pipeliner. Zero means 12.
	Threshold int
	// BatchMax is the auto-pipeliner's MaxBatchSize. Zero means the library's default.
	BatchMax int
	// FlushDelay is how long the auto-pipeliner waits for more commands. Zero means 1 µs.
	// Negative leaves it to the library. The library then waits for callers that it expects
	// back, often in vain, since the next wave has another size.
	FlushDelay time.Duration
	// BufferBytes is the size of a connection's read buffer, and of its write buffer. Zero
	// means the library's default for pipelines, 128 KiB.
	BufferBytes int
}

func (c GoRedisConfig) withDefaults() GoRedisConfig {
	c.Pool, c.Batches, c.Threshold = cmp.Or(c.Pool, 64), cmp.Or(c.Batches, 1), cmp.Or(c.Threshold, 12)
	c.FlushDelay = max(cmp.Or(c.FlushDelay, time.Microsecond), 0)
	return c
}

// goRedisStore is immutable once built, except for its counters.
type goRedisStore struct {
	client    redis.UniversalClient
	auto      *redis.AutoPipeliner // nil in GoRedisPipeline
	mode      GoRedisMode
	threshold int64
	waves     atomic.Int64 // in flight
	meter     meter
}

// OpenGoRedis connects to the server at addr, "host:port", or to a cluster: see clusterOf.
func OpenGoRedis(addr string, cfg GoRedisConfig) (Store, error) {
	cfg = cfg.withDefaults()
	s := &goRedisStore{mode: cfg.Mode, threshold: int64(cfg.Threshold)}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	addrs, cluster := clusterOf(addr)
	s.client = redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, IsClusterMode: cluster,
		// In RESP2 a hash is an array, which can be read as a slice. In RESP3 it is a map, for
		// which this library builds a Go map per user.
		Protocol: 2,
		PoolSize: cfg.Pool,
		// Pipelines have their own pool, with 10 connections by default. Pipelines take
		// connections of the other pool when these are in use. So this pool is the one to size.
		PipelinePoolSize:        cfg.Pool,
		PipelineReadBufferSize:  cfg.BufferBytes,
		PipelineWriteBufferSize: cfg.BufferBytes,
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
	options := redis.AutoPipelineOptions{
		// Order between the commands of a wave does not matter: all are reads.
		MaxConcurrentBatches: cfg.Batches, Unordered: cfg.Batches > 1,
		MaxBatchSize: cfg.BatchMax, MaxFlushDelay: cfg.FlushDelay,
	}
	var err error
	switch cfg.Mode {
	case GoRedisAdaptive, GoRedisAuto:
		s.auto, err = s.client.AsyncAutoPipelineWithOptions(&options)
	case GoRedisFullDuplex:
		options.FullDuplex = true
		s.auto, err = s.client.AutoPipelineWithOptions(&options)
	}
	if err == nil {
		err = s.client.Ping(context.Background()).Err()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("go-redis: %w", err)
	}
	return s, nil
}

// Read implements Store. A null is read as an empty text here. So an empty text counts as
// missing where nulls are possible.
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
			b.replies = append(b.replies, Text{Value: value, Known: value != "" || !c.nulls})
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
	mode := s.mode
	if mode == GoRedisAdaptive {
		defer s.waves.Add(-1)
		mode = GoRedisPipeline
		if s.waves.Add(1) >= s.threshold && len(commands) < wideWave {
			mode = GoRedisAuto
		}
	}
	switch mode {
	case GoRedisAuto:
		for _, c := range commands {
			s.auto.Submit(ctx, c)
		}
	case GoRedisFullDuplex:
		_ = s.auto.FDPipelined(ctx, commands)
	default:
		pipe := s.client.Pipeline()
		_ = pipe.BatchProcess(ctx, commands...) // never fails
		_, _ = pipe.Exec(ctx)
	}
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

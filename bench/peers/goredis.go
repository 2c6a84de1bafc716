package peers

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// GoRedisMode says how go-redis sends a wave.
type GoRedisMode uint8

// The modes.
const (
	// GoRedisPipeline sends each wave as a pipeline on a connection of its own, from a pool.
	GoRedisPipeline GoRedisMode = iota
	// GoRedisFullDuplex sends the waves of all requests on shared connections, without
	// waiting for earlier replies: auto-pipelining as of v9.22.
	GoRedisFullDuplex
	// GoRedisAuto leaves it to the auto-pipeliner to make batches of the commands of all
	// requests, one after the other in flight on a connection: half duplex.
	GoRedisAuto
)

// GoRedisReply says how replies are decoded.
type GoRedisReply uint8

// The decoders.
const (
	GoRedisStrings GoRedisReply = iota // into strings, by the library
	GoRedisRaw                         // by this package, from the bytes as they came
)

// GoRedisConfig configures a store on go-redis. The zero value is what was found to be
// the fastest; see README.md.
type GoRedisConfig struct {
	Mode  GoRedisMode
	Reply GoRedisReply
	// Conns bounds the connections: pipelines' (zero means 64, one for each
	// request in flight), full-duplex engines (zero means 1), or half-duplex batches in
	// flight (zero means 1).
	Conns int
	// BatchMax is the auto-pipeliner's MaxBatchSize. Zero means the library's default.
	BatchMax int
	// MaxFlushDelay is how long the auto-pipeliner may wait for more commands.
	MaxFlushDelay time.Duration
	// BufferBytes is the size of a connection's read buffer, and of its write buffer. Zero
	// means the library's default for pipelines, 128 KiB.
	BufferBytes int
}

// goRedisStore is immutable once built.
type goRedisStore struct {
	client  *redis.Client
	auto    *redis.AutoPipeliner // nil in GoRedisPipeline
	mode    GoRedisMode
	reply   GoRedisReply
	meter   meter
	batches sync.Pool // of *goRedisBatch
}

// goRedisBatch is the memory of a wave that can be used again.
type goRedisBatch struct {
	keys     keys
	commands []redis.Cmder
}

// OpenGoRedis connects to the server at addr, "host:port".
func OpenGoRedis(addr string, cfg GoRedisConfig) (Store, error) {
	s := &goRedisStore{mode: cfg.Mode, reply: cfg.Reply}
	s.batches.New = func() any { return new(goRedisBatch) }
	conns := cfg.Conns
	if conns == 0 {
		conns = 1
		if cfg.Mode == GoRedisPipeline {
			conns = 64
		}
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	s.client = redis.NewClient(&redis.Options{
		Addr: addr,
		// In RESP2 a hash is an array, which can be read as a slice; in RESP3 it is a map, which
		// this library hands out as a Go map only: one to build for each user.
		Protocol: 2,
		PoolSize: conns,
		// Pipelines have a pool of their own, of 10 connections, beyond which they spill to
		// the other; so this is the one to size.
		PipelinePoolSize:        conns,
		PipelineReadBufferSize:  cfg.BufferBytes,
		PipelineWriteBufferSize: cfg.BufferBytes,
		// -2 sets no deadline on the socket at all, instead of one before each read and
		// write. The caller's load runs against a server on the same machine.
		ReadTimeout:  -2,
		WriteTimeout: -2,
		// What a plain Redis has no answer to is not asked for on connecting.
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
	switch cfg.Mode {
	case GoRedisFullDuplex:
		s.auto, err = s.client.AutoPipelineWithOptions(&redis.AutoPipelineOptions{
			FullDuplex: true, NumShards: conns, MaxBatchSize: cfg.BatchMax, MaxFlushDelay: cfg.MaxFlushDelay,
		})
	case GoRedisAuto:
		s.auto, err = s.client.AsyncAutoPipelineWithOptions(&redis.AutoPipelineOptions{
			MaxConcurrentBatches: conns, Unordered: conns > 1, MaxBatchSize: cfg.BatchMax, MaxFlushDelay: cfg.MaxFlushDelay,
		})
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

// ReadLists implements Store.
func (s *goRedisStore) ReadLists(ctx context.Context, lists []Lists) error {
	n := listCommands(lists)
	b := s.batches.Get().(*goRedisBatch)
	defer s.put(b)
	for i := range lists {
		b.keys.grow(len(lists[i].Of), lists[i].Prefix)
		for _, id := range lists[i].Of {
			b.keys.add(lists[i].Prefix, id)
		}
	}
	text := b.keys.text()
	// One array for the arguments of all commands, and one for the keys, which are
	// passed by pointer: a string in an interface would be one allocation more for each.
	const words = 4
	names, args := make([]string, n), make([]any, 0, n*words)
	c := 0
	for i := range lists {
		var stop any = lists[i].Fanout - 1
		for range lists[i].Of {
			start, end := b.keys.bounds(c)
			names[c] = text[start:end]
			args = append(args, "lrange", &names[c], 0, stop)
			b.commands = append(b.commands, s.command(ctx, args[c*words:(c+1)*words:(c+1)*words]))
			c++
		}
	}
	if err := s.do(ctx, b.commands); err != nil {
		return err
	}
	replies := b.commands
	for i := range lists {
		l := &lists[i]
		var err error
		if l.IDs, err = s.ids(replies[:len(l.Of)]); err != nil {
			return fmt.Errorf("LRANGE %s: %w", l.Prefix, err)
		}
		replies = replies[len(l.Of):]
	}
	return nil
}

func (s *goRedisStore) ids(replies []redis.Cmder) ([]int64, error) {
	if s.reply == GoRedisRaw {
		return rawIDs(replies)
	}
	total := 0
	for _, reply := range replies {
		total += len(reply.(*redis.StringSliceCmd).Val())
	}
	ids := make([]int64, 0, total)
	for _, reply := range replies {
		for _, entry := range reply.(*redis.StringSliceCmd).Val() {
			if id, ok := parseID(entry); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// ReadUsers implements Store.
func (s *goRedisStore) ReadUsers(ctx context.Context, users []Users) error {
	n := userCommands(users)
	b := s.batches.Get().(*goRedisBatch)
	defer s.put(b)
	for i := range users {
		b.keys.grow(len(users[i].IDs), userPrefix)
		for _, id := range users[i].IDs {
			b.keys.add(userPrefix, id)
		}
	}
	text := b.keys.text()
	const words = 2
	names, args := make([]string, n), make([]any, 0, n*words)
	for c := range n {
		start, end := b.keys.bounds(c)
		names[c] = text[start:end]
		args = append(args, "hgetall", &names[c])
		b.commands = append(b.commands, s.command(ctx, args[c*words:(c+1)*words:(c+1)*words]))
	}
	if err := s.do(ctx, b.commands); err != nil {
		return err
	}
	replies := b.commands
	for i := range users {
		u := &users[i]
		u.Countries = make([]Country, len(u.IDs))
		for j := range u.Countries {
			var err error
			if u.Countries[j], err = s.country(replies[j]); err != nil {
				return fmt.Errorf("HGETALL %s%d: %w", userPrefix, u.IDs[j], err)
			}
		}
		replies = replies[len(u.IDs):]
	}
	return nil
}

// country finds the country in field, value, field, value.
func (s *goRedisStore) country(reply redis.Cmder) (Country, error) {
	if s.reply == GoRedisRaw {
		return rawCountry(reply.(*redis.RawCmd).Val())
	}
	fields := reply.(*redis.StringSliceCmd).Val()
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == countryField {
			return Country{Name: fields[i+1], Known: true}, nil
		}
	}
	return Country{}, nil
}

// command makes a command whose reply is an array of strings.
func (s *goRedisStore) command(ctx context.Context, args []any) redis.Cmder {
	if s.reply == GoRedisRaw {
		return redis.NewRawCmd(ctx, args...)
	}
	return redis.NewStringSliceCmd(ctx, args...)
}

// do sends a wave and returns when all of it is answered.
func (s *goRedisStore) do(ctx context.Context, commands []redis.Cmder) error {
	if len(commands) == 0 {
		return nil
	}
	s.meter.commands.Add(uint64(len(commands)))
	switch s.mode {
	case GoRedisFullDuplex:
		return s.auto.FDPipelined(ctx, commands)
	case GoRedisAuto:
		for _, c := range commands {
			s.auto.Submit(ctx, c)
		}
		for _, c := range commands {
			if err := c.Err(); err != nil { // waits
				return err
			}
		}
		return nil
	default:
		pipe := s.client.Pipeline()
		if err := pipe.BatchProcess(ctx, commands...); err != nil {
			return err
		}
		_, err := pipe.Exec(ctx)
		return err
	}
}

// put keeps a batch's memory for the next wave.
func (s *goRedisStore) put(b *goRedisBatch) {
	b.keys.reset()
	clear(b.commands)
	b.commands = b.commands[:0]
	s.batches.Put(b)
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

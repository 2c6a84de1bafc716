package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/bits"
	"net"
	"sync"
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
	// (MaxFlushDelay): one system call for many requests, but no use to a request that is
	// alone. Zero means 20 µs; negative means that there is no such connection.
	FlushDelay time.Duration
	// Threshold is the number of waves in flight from which they go to the connection that
	// waits. Zero means 16.
	Threshold int
	// AlwaysPipelining has the background goroutines of a connection run even while
	// there is one caller.
	AlwaysPipelining bool
	// RingScale is the binary logarithm of the number of batches in flight on a
	// connection. Zero means rueidis's default, 10.
	RingScale int
	// BufferBytes is the size of a connection's read buffer, and of its write buffer. Zero
	// means rueidis's default, half a megabyte.
	BufferBytes int
}

func (c RueidisConfig) withDefaults() RueidisConfig {
	c.Conns, c.Threshold = cmp.Or(c.Conns, 2), cmp.Or(c.Threshold, 16)
	c.FlushDelay = cmp.Or(c.FlushDelay, 20*time.Microsecond)
	return c
}

// rueidisStore pipelines the batches of all requests on a few connections. Immutable once
// built, but for its counters.
type rueidisStore struct {
	prompt    rueidis.Client // flushes at once
	patient   rueidis.Client // waits for more; nil if not wanted
	threshold int64
	waves     atomic.Int64 // in flight
	meter     meter
	// batches holds *rueidisBatch: what a wave needs only while it is under way.
	batches sync.Pool
}

type rueidisBatch struct {
	keys     keys
	commands []rueidis.Completed
}

// OpenRueidis connects to the server at addr, "host:port".
func OpenRueidis(addr string, cfg RueidisConfig) (Store, error) {
	cfg = cfg.withDefaults()
	s := &rueidisStore{threshold: int64(cfg.Threshold)}
	s.batches.New = func() any { return new(rueidisBatch) }
	options := rueidis.ClientOption{
		InitAddress: []string{addr},
		// The client does not ask the server whether it is a cluster.
		ForceSingleClient: true,
		PipelineMultiplex: multiplex(cfg.Conns),
		AlwaysPipelining:  cfg.AlwaysPipelining,
		RingScaleEachConn: cfg.RingScale,
		// Client-side caching would answer from memory what the engine asks Redis for.
		DisableCache: true,
		// A failure is reported at once, as in the engine.
		DisableRetry: true,
		// In RESP2 a hash is an array, which can be walked. In RESP3 it is a map, for which this
		// library builds a Go map per user.
		AlwaysRESP2:         true,
		ReadBufferEachConn:  cfg.BufferBytes,
		WriteBufferEachConn: cfg.BufferBytes,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return s.meter.count(conn), nil
		},
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

// multiplex returns the option PipelineMultiplex for a number of connections: its
// logarithm, except that 0 would leave the number to the library.
func multiplex(conns int) int {
	if conns == 1 {
		return -1
	}
	return bits.Len(uint(conns)) - 1
}

// ReadLists implements Store.
func (s *rueidisStore) ReadLists(ctx context.Context, lists []Lists) error {
	b := s.batches.Get().(*rueidisBatch)
	defer s.put(b)
	for i := range lists {
		b.keys.grow(len(lists[i].Of), lists[i].Prefix)
		for _, id := range lists[i].Of {
			b.keys.add(lists[i].Prefix, id)
		}
	}
	text, n := b.keys.text(), 0
	for i := range lists {
		stop := int64(lists[i].Fanout) - 1
		for range lists[i].Of {
			start, end := b.keys.bounds(n)
			n++
			b.commands = append(b.commands, s.prompt.B().Lrange().Key(text[start:end]).Start(0).Stop(stop).Build())
		}
	}
	replies := s.do(ctx, b.commands)
	for i := range lists {
		l := &lists[i]
		var err error
		if l.IDs, err = rueidisIDs(replies[:len(l.Of)]); err != nil {
			return fmt.Errorf("LRANGE %s: %w", l.Prefix, err)
		}
		replies = replies[len(l.Of):]
	}
	return nil
}

func rueidisIDs(replies []rueidis.RedisResult) ([]int64, error) {
	total := 0
	for i := range replies {
		entries, err := replies[i].ToArray()
		if err != nil {
			return nil, err
		}
		total += len(entries)
	}
	ids := make([]int64, 0, total)
	for i := range replies {
		entries, err := replies[i].ToArray()
		if err != nil {
			return nil, err
		}
		for j := range entries {
			entry, err := entries[j].ToString()
			if err != nil {
				return nil, err
			}
			if id, ok := parseID(entry); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// ReadUsers implements Store.
func (s *rueidisStore) ReadUsers(ctx context.Context, users []Users) error {
	b := s.batches.Get().(*rueidisBatch)
	defer s.put(b)
	for i := range users {
		b.keys.grow(len(users[i].IDs), userPrefix)
		for _, id := range users[i].IDs {
			b.keys.add(userPrefix, id)
		}
	}
	text := b.keys.text()
	for i := range userCommands(users) {
		start, end := b.keys.bounds(i)
		b.commands = append(b.commands, s.prompt.B().Hgetall().Key(text[start:end]).Build())
	}
	replies := s.do(ctx, b.commands)
	for i := range users {
		u := &users[i]
		u.Countries = make([]Country, len(u.IDs))
		for j := range u.Countries {
			fields, err := replies[j].ToArray()
			if err != nil {
				return fmt.Errorf("HGETALL %s%d: %w", userPrefix, u.IDs[j], err)
			}
			if u.Countries[j], err = rueidisCountry(fields); err != nil {
				return fmt.Errorf("HGETALL %s%d: %w", userPrefix, u.IDs[j], err)
			}
		}
		replies = replies[len(u.IDs):]
	}
	return nil
}

// rueidisCountry finds the country in field, value, field, value.
func rueidisCountry(fields []rueidis.RedisMessage) (Country, error) {
	for i := 0; i+1 < len(fields); i += 2 {
		if name, err := fields[i].ToString(); err != nil {
			return Country{}, err
		} else if name == countryField {
			value, err := fields[i+1].ToString()
			return Country{Name: value, Known: true}, err
		}
	}
	return Country{}, nil
}

// do sends a wave.
func (s *rueidisStore) do(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	s.meter.commands.Add(uint64(len(commands)))
	defer s.waves.Add(-1)
	client := s.prompt
	if s.waves.Add(1) >= s.threshold && len(commands) < wideWave && s.patient != nil {
		client = s.patient
	}
	if len(commands) == 1 { // spares the bookkeeping of a batch
		return []rueidis.RedisResult{client.Do(ctx, commands[0])}
	}
	return client.DoMulti(ctx, commands...)
}

// put keeps a batch's memory for the next wave. The client holds on to none of it.
func (s *rueidisStore) put(b *rueidisBatch) {
	b.keys.reset()
	clear(b.commands) // commands go back to the client's own pool
	b.commands = b.commands[:0]
	s.batches.Put(b)
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

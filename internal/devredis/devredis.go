package devredis

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/alicebob/miniredis/v2"
	"github.com/tidwall/redcon"
)

// Server is a running miniredis. Any goroutine.
type Server struct{ redis *miniredis.Miniredis }

// Start starts a server on a free loopback port, filled with the data set.
func Start() (*Server, error) {
	redis := miniredis.NewMiniRedis()
	for id := 1; id <= Users; id++ {
		if err := store(redis, makeUser(id)); err != nil {
			return nil, fmt.Errorf("embedded redis: load user %d: %w", id, err)
		}
	}
	if err := redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	return &Server{redis: redis}, nil
}

// store writes a user without a round trip.
func store(redis *miniredis.Miniredis, u user) error {
	for _, c := range u.commands() {
		var err error
		switch c.name {
		case "HSET":
			redis.HSet(c.key, c.args...)
		case "RPUSH":
			_, err = redis.Push(c.key, c.args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// command is one write: HSET key field value… or RPUSH key entry….
type command struct {
	name, key string
	args      []string
}

func (u user) commands() []command {
	id := strconv.Itoa(u.id)
	fields := []string{"name", u.name}
	if u.country != "" {
		fields = append(fields, "country", u.country)
	}
	return []command{
		{"HSET", "user:" + id, fields},
		{"RPUSH", "follow:" + id, u.follow},
		{"RPUSH", "recommendation:" + id, u.recommendations},
		{"RPUSH", "media:" + id, u.media},
	}
}

// Addr returns the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return s.redis.Addr() }

// Port returns the server's port on 127.0.0.1.
func (s *Server) Port() int {
	port, err := strconv.Atoi(s.redis.Port())
	if err != nil {
		panic(fmt.Sprintf("devredis: miniredis reports port %q", s.redis.Port()))
	}
	return port
}

// Close stops the server and waits until it has.
func (s *Server) Close() { s.redis.Close() }

// Load fills the Redis at addr ("host:port") with the data set, replacing the keys of the
// same name. It is meant for the empty server of a demo, a test or a benchmark, one without
// a password. The error names addr.
func Load(ctx context.Context, addr string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("load demo data into %s: %w", addr, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := load(conn); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("load demo data into %s: %w", addr, err)
	}
	return nil
}

// load writes user by user and reads the replies of each before the next, so
// that neither side ever waits for the other's full buffers.
func load(conn net.Conn) error {
	replies := bufio.NewReader(conn)
	var out []byte
	for id := 1; id <= Users; id++ {
		out = out[:0]
		commands := makeUser(id).commands()
		for _, c := range commands {
			out = redcon.AppendArray(out, 2)
			out = redcon.AppendBulkString(out, "DEL")
			out = redcon.AppendBulkString(out, c.key)
			out = redcon.AppendArray(out, 2+len(c.args))
			out = redcon.AppendBulkString(out, c.name)
			out = redcon.AppendBulkString(out, c.key)
			for _, arg := range c.args {
				out = redcon.AppendBulkString(out, arg)
			}
		}
		if _, err := conn.Write(out); err != nil {
			return err
		}
		for range 2 * len(commands) { // each reply is one line: an integer or an error
			line, err := replies.ReadSlice('\n')
			if err != nil {
				return err
			}
			if line[0] != ':' {
				return fmt.Errorf("user %d: %s", id, bytes.TrimSpace(line))
			}
		}
	}
	return nil
}

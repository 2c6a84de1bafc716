package devredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"github.com/rankd/rankd/internal/redisclient"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
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

// Load fills the Redis that server names, as in rankd.Options.Redis, with the data set. It replaces
// the keys of the same name. The error names the address.
func Load(ctx context.Context, server string) error {
	at, err := registry.ParseServer(server)
	if err == nil {
		err = redisclient.With(ctx, server, load)
	}
	if err != nil {
		return fmt.Errorf("load demo data into %s: %w", at.Addr(), err)
	}
	return nil
}

// load writes user by user and reads the replies of each before the next, so
// that neither side ever waits for the other's full buffers.
func load(client *blocking.Client) error {
	var b resp.Batch
	for id := 1; id <= Users; id++ {
		b.Reset()
		for _, c := range makeUser(id).commands() {
			b.Cmd("DEL", c.key)
			b.Cmd(append([]string{c.name, c.key}, c.args...)...)
		}
		err := client.Do(&b, 0, func(replies resp.Replies) error {
			for _, r := range replies.All() {
				if err := r.Err(); err != nil {
					return fmt.Errorf("user %d: %w", id, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

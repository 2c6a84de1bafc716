package devredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/alicebob/miniredis/v2"

	"github.com/rankd/rankd/registry"
)

// Server is a running miniredis. Any goroutine.
type Server struct{ redis *miniredis.Miniredis }

// Start starts a server on a free loopback port, filled with the data set.
func Start() (*Server, error) {
	var commands []Command
	for id := 1; id <= Users; id++ {
		commands = append(commands, makeUser(id).commands()...)
	}
	return StartWith(commands)
}

// StartWith starts a server on a free loopback port that has run the commands.
func StartWith(commands []Command) (*Server, error) {
	s := &Server{redis: miniredis.NewMiniRedis()}
	if err := s.store(commands); err != nil {
		return nil, err
	}
	if err := s.redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	return s, nil
}

// Replace removes all that the server has and runs the commands.
func (s *Server) Replace(commands []Command) error {
	s.redis.FlushAll()
	return s.store(commands)
}

// store runs commands without a round trip.
func (s *Server) store(commands []Command) (err error) {
	for _, c := range commands {
		switch c.Name {
		case "SET":
			err = s.redis.Set(c.Key, c.Args[0])
		case "HSET":
			s.redis.HSet(c.Key, c.Args...)
		case "RPUSH":
			_, err = s.redis.Push(c.Key, c.Args...)
		case "SADD":
			_, err = s.redis.SAdd(c.Key, c.Args...)
		case "ZADD":
			for i := 0; err == nil && i < len(c.Args); i += 2 {
				var score float64
				if score, err = strconv.ParseFloat(c.Args[i+1], 64); err == nil {
					_, err = s.redis.ZAdd(c.Key, score, c.Args[i])
				}
			}
		default:
			err = fmt.Errorf("unknown command %s", c.Name)
		}
		if err != nil {
			return fmt.Errorf("embedded redis: %s %s: %w", c.Name, c.Key, err)
		}
	}
	return nil
}

// A Command writes a key: SET key value, HSET key field value…, RPUSH key entry…, SADD key member… or ZADD key member score….
// Immutable.
type Command struct {
	Name, Key string
	Args      []string
}

func (u user) commands() []Command {
	id := strconv.Itoa(u.id)
	fields := []string{"name", u.name}
	if u.country != "" {
		fields = append(fields, "country", u.country)
	}
	return []Command{
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
func Load(ctx context.Context, server string) error { return LoadUsers(ctx, server, Users) }

// LoadUsers is Load for so many users. Their lists name the users of the data set.
func LoadUsers(ctx context.Context, server string, users int) error {
	at, err := registry.ParseServer(server)
	if err == nil {
		err = Refill(ctx, server, func(write func(command ...string) error) error {
			for id := 1; id <= users; id++ {
				for _, c := range makeUser(id).commands() {
					if err := write(append([]string{c.Name, c.Key}, c.Args...)...); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("load demo data into %s: %w", at.Addr(), err)
	}
	return nil
}

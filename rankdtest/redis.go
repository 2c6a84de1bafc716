package rankdtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rankd/rankd/internal/devredis"
)

// Redis is a Redis inside the process. Any goroutine.
type Redis struct{ server *devredis.Server }

// StartRedis starts a server on a free port of 127.0.0.1, filled with the demo data of 1,000
// users. Close ends it.
func StartRedis() (*Redis, error) {
	server, err := devredis.Start()
	if err != nil {
		return nil, fmt.Errorf("rankdtest: %w", err)
	}
	return &Redis{server}, nil
}

// StartRedisWith starts a server as StartRedis does, but filled with data as for Redis.Replace.
func StartRedisWith(data map[string]any) (*Redis, error) {
	commands, err := commandsFor(data)
	if err != nil {
		return nil, err
	}
	server, err := devredis.StartWith(commands)
	if err != nil {
		return nil, fmt.Errorf("rankdtest: %w", err)
	}
	return &Redis{server}, nil
}

// Set is a set as a value of a key. Immutable.
type Set []string

// SortedSet is a sorted set as a value of a key: the scores by member. Immutable.
type SortedSet map[string]float64

// Replace removes all keys and stores data, the values by key. The error names the keys whose values are none of these:
//
//	string, number, bool     a string; a number is an int, an int64, a float64 or a json.Number
//	[]string, []int64, []any a list; an element is a string, a number or a bool
//	map[string]string        a hash
//	map[string]any           a hash; a field is a string, a number or a bool
//	Set                      a set
//	SortedSet                a sorted set
//
// So data can be what encoding/json makes of a document. It fills database 0. An engine uses only that database if
// Options.Redis is "redis://" + r.Addr() + "/0". No request should run meanwhile.
func (r *Redis) Replace(data map[string]any) error {
	commands, err := commandsFor(data)
	if err != nil {
		return err
	}
	return r.server.Replace(commands)
}

// Addr returns the server's address, "127.0.0.1:port", as rankd.Options.Redis takes it.
func (r *Redis) Addr() string { return r.server.Addr() }

// Close stops the server and waits until it has.
func (r *Redis) Close() { r.server.Close() }

// commandsFor returns the commands that store data, in the order of the keys.
func commandsFor(data map[string]any) ([]devredis.Command, error) {
	var commands []devredis.Command
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		command := devredis.Command{Key: key}
		var err error
		switch v := data[key].(type) {
		case []string:
			command.Name, command.Args = "RPUSH", v
		case []int64:
			command.Name = "RPUSH"
			command.Args, err = texts(v)
		case []any:
			command.Name = "RPUSH"
			command.Args, err = texts(v)
		case map[string]string:
			command.Name = "HSET"
			command.Args, err = pairs(v)
		case map[string]any:
			command.Name = "HSET"
			command.Args, err = pairs(v)
		case Set:
			command.Name, command.Args = "SADD", v
		case SortedSet:
			command.Name = "ZADD"
			command.Args, err = pairs(v)
		default:
			command.Name = "SET"
			command.Args, err = texts([]any{v})
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("rankdtest: key %q: %w", key, err))
			continue
		}
		if len(command.Args) > 0 { // Redis has no empty lists, sets and hashes.
			commands = append(commands, command)
		}
	}
	return commands, errors.Join(problems...)
}

// pairs returns keys and values in turn, in the order of the keys.
func pairs[K cmp.Ordered, V any](of map[K]V) ([]string, error) {
	var flat []any
	for _, k := range slices.Sorted(maps.Keys(of)) {
		flat = append(flat, k, of[k])
	}
	return texts(flat)
}

// texts returns values as Redis stores them.
func texts[V any](values []V) ([]string, error) {
	all := make([]string, len(values))
	for i, value := range values {
		switch v := any(value).(type) {
		case string:
			all[i] = v
		case int:
			all[i] = strconv.Itoa(v)
		case int64:
			all[i] = strconv.FormatInt(v, 10)
		case float64:
			all[i] = strconv.FormatFloat(v, 'f', -1, 64)
		case json.Number:
			all[i] = v.String()
		case bool:
			all[i] = strconv.FormatBool(v)
		default:
			return nil, fmt.Errorf("a value cannot be a %T here", value)
		}
	}
	return all, nil
}

package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/process"
)

// startServer starts "rankd serve" on a redis-server with the demo data.
func startServer(t testing.TB) *process.Replica {
	t.Helper()
	data := startRedis(t)
	program, err := process.Build(t.Context(), t.TempDir(), false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := process.StartReplica(ctx, process.ReplicaOptions{Program: program, Args: []string{"--redis", data.Addr, "--drain_delay_ms", "0"}})
	if err != nil {
		cancel()
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		defer cancel()
		ctx, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		assert.NoError(t, r.Stop(ctx))
	})
	return r
}

// served is the part of an answer that the tests check.
type served struct {
	RequestID  string `json:"request_id"`
	Candidates []struct {
		ID int64 `json:"id"`
	} `json:"candidates"`
}

// asker calls rankd through another project's Redis client.
type asker interface {
	// ask sends one command and returns the reply, a string.
	ask(ctx context.Context, words ...any) (string, error)
	// pipeline sends commands together. A reply that is an error takes its place.
	pipeline(ctx context.Context, commands [][]any) ([]string, []error)
	// list sends one command whose reply is a list of strings.
	list(ctx context.Context, words ...any) ([]string, error)
}

// TestRankdServesRedisClients calls rankd with unmodified go-redis and rueidis, over RESP2 and
// RESP3.
func TestRankdServesRedisClients(t *testing.T) {
	server := startServer(t)
	for name, connect := range map[string]func(t *testing.T) asker{
		"go-redis/RESP2": func(t *testing.T) asker { return connectGoRedis(t, server.RESP, 2) },
		"go-redis/RESP3": func(t *testing.T) asker { return connectGoRedis(t, server.RESP, 3) },
		"rueidis/RESP2":  func(t *testing.T) asker { return connectRueidis(t, server.RESP, true) },
		"rueidis/RESP3":  func(t *testing.T) asker { return connectRueidis(t, server.RESP, false) },
	} {
		t.Run(name, func(t *testing.T) {
			client, ctx := connect(t), t.Context()
			text, err := client.ask(ctx, "PING")
			require.NoError(t, err)
			assert.Equal(t, "PONG", text)

			text, err = client.ask(ctx, "RANK", "complex_dag", "1", `{"request_id": "one"}`)
			require.NoError(t, err)
			var one served
			require.NoError(t, json.Unmarshal([]byte(text), &one))
			assert.Equal(t, "one", one.RequestID)
			assert.Len(t, one.Candidates, 50)

			_, err = client.ask(ctx, "RANK", "nowhere", "1")
			assert.ErrorContains(t, err, "NOPLAN")

			var commands [][]any
			for user := 1; user <= 200; user++ {
				word := fmt.Sprint(user)
				if user == 100 {
					word = "hundred"
				}
				commands = append(commands, []any{"RANK", "simple_viewer", word})
			}
			texts, errs := client.pipeline(ctx, commands)
			require.Len(t, texts, len(commands))
			for i, text := range texts {
				if i+1 == 100 {
					assert.ErrorContains(t, errs[i], "BADREQ")
					continue
				}
				require.NoError(t, errs[i])
				var answer served
				require.NoError(t, json.Unmarshal([]byte(text), &answer))
				require.EqualValues(t, i+1, answer.Candidates[0].ID, "in order")
			}

			many, err := client.list(ctx, "RANK.MANY", "simple_viewer", "7", "8")
			require.NoError(t, err)
			require.Len(t, many, 2)
			assert.Contains(t, many[1], `"id":8`)

			plans, err := client.list(ctx, "PLANS")
			require.NoError(t, err)
			assert.Contains(t, plans, "complex_dag")

			short, cancel := context.WithTimeout(ctx, 5*time.Millisecond) // the client gives up before 20 ms have passed, and goes on
			defer cancel()
			_, err = client.ask(short, "RANK", "parallel_sleep_plan", "1")
			assert.Error(t, err)
			text, err = client.ask(ctx, "RANK", "simple_viewer", "1")
			require.NoError(t, err)
			assert.Contains(t, text, `"id":1`)
		})
	}
}

type goRedisAsker struct{ *redis.Client }

func connectGoRedis(t *testing.T, addr string, protocol int) asker {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, ContextTimeoutEnabled: true})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return goRedisAsker{client}
}

func (c goRedisAsker) ask(ctx context.Context, words ...any) (string, error) {
	return c.Do(ctx, words...).Text()
}

func (c goRedisAsker) list(ctx context.Context, words ...any) ([]string, error) {
	return c.Do(ctx, words...).StringSlice()
}

func (c goRedisAsker) pipeline(ctx context.Context, commands [][]any) (texts []string, errs []error) {
	pipe := c.Pipeline()
	var replies []*redis.Cmd
	for _, words := range commands {
		replies = append(replies, pipe.Do(ctx, words...))
	}
	_, _ = pipe.Exec(ctx) // each reply has its error
	for _, reply := range replies {
		text, err := reply.Text()
		texts, errs = append(texts, text), append(errs, err)
	}
	return texts, errs
}

type rueidisAsker struct{ rueidis.Client }

// connectRueidis connects with client-side caching over RESP3, which is the default of rueidis.
func connectRueidis(t *testing.T, addr string, resp2 bool) asker {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, AlwaysRESP2: resp2, DisableCache: resp2})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return rueidisAsker{client}
}

func (c rueidisAsker) command(words []any) rueidis.Completed {
	command := c.B().Arbitrary(words[0].(string))
	for _, word := range words[1:] {
		command = command.Args(word.(string))
	}
	return command.Build()
}

func (c rueidisAsker) ask(ctx context.Context, words ...any) (string, error) {
	return c.Do(ctx, c.command(words)).ToString()
}

func (c rueidisAsker) list(ctx context.Context, words ...any) ([]string, error) {
	return c.Do(ctx, c.command(words)).AsStrSlice()
}

func (c rueidisAsker) pipeline(ctx context.Context, commands [][]any) (texts []string, errs []error) {
	var all rueidis.Commands
	for _, words := range commands {
		all = append(all, c.command(words))
	}
	for _, reply := range c.DoMulti(ctx, all...) {
		text, err := reply.ToString()
		texts, errs = append(texts, text), append(errs, err)
	}
	return texts, errs
}

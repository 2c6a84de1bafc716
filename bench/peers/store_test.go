package peers

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/internal/worker"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// fill runs commands on a server.
func fill(t testing.TB, addr string, commands ...[]any) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for _, c := range commands {
		require.NoError(t, client.Do(context.Background(), c...).Err())
	}
}

// TestOddData has data of kinds that the demo data does not have.
func TestOddData(t *testing.T) {
	server := testworld.StartRedis(t)
	fill(t, server.Addr,
		[]any{"RPUSH", "follow:1", "2", "junk", "-3x", "9223372036854775808", "", "2", "7"},
		[]any{"HSET", "user:1", "country", "US"},
		[]any{"HSET", "user:2", "name", "country", "Country", "no", "country", ""},
		[]any{"HSET", "user:-3", "country", "DE", "country2", "no"},
		[]any{"HSET", "user:7", "name", "no country"},
	)
	e := openEngine(t, server.Addr, 6)
	for _, spec := range slices.Concat(specs, caching) {
		t.Run(spec, func(t *testing.T) {
			run, _ := openPlan(t, spec, server.Addr, "concat_plan", 6)
			answer, err := run(context.Background(), Request{UserID: 1})
			require.NoError(t, err)
			assert.Equal(t, []Candidate{
				{ID: 2, Country: Text{Value: "", Known: true}},
				{ID: -3, Country: Text{Value: "DE", Known: true}},
				{ID: 2, Country: Text{Value: "", Known: true}},
			}, answer)
			assert.Equal(t, e.run(t, 1), show(answer))
		})
	}
}

// TestErrorsOfRedis: a key of the wrong type fails only the request that reads it.
func TestErrorsOfRedis(t *testing.T) {
	server := testworld.StartRedis(t)
	fill(t, server.Addr,
		[]any{"SET", "user:1", "no hash"},
		[]any{"SET", "recommendation:2", "no list"},
		[]any{"RPUSH", "follow:3", "4", "1", "5"}, // user 1 is not a hash
		[]any{"RPUSH", "follow:6", "4"},
	)
	for _, spec := range slices.Concat(specs, caching) {
		t.Run(spec, func(t *testing.T) {
			run, _ := openPlan(t, spec, server.Addr, "concat_plan", 0)
			for user, want := range map[int64]string{1: "WRONGTYPE", 2: "WRONGTYPE", 3: "WRONGTYPE", 6: ""} {
				_, err := run(context.Background(), Request{UserID: user})
				if want == "" {
					assert.NoError(t, err, "user %d", user)
				} else {
					assert.ErrorContains(t, err, want, "user %d", user)
				}
			}
		})
	}
}

func TestUnknownPlan(t *testing.T) {
	server := testworld.StartRedis(t)
	for spec, plan := range map[string]string{"rueidis": "simple_viewer", "go-redis": "feed"} {
		s, err := ParseSpec(spec)
		require.NoError(t, err)
		_, _, err = s.Open(server.Addr, plan, 0)
		assert.ErrorIs(t, err, ErrUnknownPlan)
	}
}

func TestOpenWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for _, text := range []string{"rueidis", "go-redis"} {
		t.Run(text, func(t *testing.T) {
			spec, err := ParseSpec(text)
			require.NoError(t, err)
			_, _, err = spec.Open(l.Addr().String(), "concat_plan", 0)
			assert.Error(t, err)
		})
	}
}

// TestManyAtOnce: requests that are in flight together get their own answers.
func TestManyAtOnce(t *testing.T) {
	server := startRedis(t)
	e := openEngine(t, server.Addr, 0)
	want := make([][]candidate, 64)
	for i := range want {
		want[i] = e.run(t, int64(i+1))
	}
	for _, spec := range slices.Concat(specs, caching) {
		t.Run(spec, func(t *testing.T) {
			run, _ := openPlan(t, spec, server.Addr, "concat_plan", 0)
			var clients sync.WaitGroup
			for i := range want {
				clients.Go(func() {
					for range 5 {
						answer, err := run(context.Background(), Request{UserID: int64(i + 1)})
						assert.NoError(t, err)
						assert.Equal(t, want[i], show(answer), "user %d", i+1)
					}
				})
			}
			clients.Wait()
		})
	}
}

// TestTarget drives a plan that needs no Redis. Every request is answered once, for its user.
func TestTarget(t *testing.T) {
	for name, l := range map[string]load.Load{
		"closed loop": {Users: []int64{1, 2, 3}, Concurrency: 8, Requests: 3000},
		"open loop":   {Users: []int64{1, 2, 3}, Concurrency: 3000, Rate: 1e6, Requests: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[int64]int{}
			plan := func(_ context.Context, req Request) ([]Candidate, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[req.UserID]++
				if req.UserID == 3 {
					return nil, errors.New("no such user")
				}
				return nil, nil
			}
			result, err := load.Driver{}.Run(context.Background(), NewTarget(plan, nil, Context{}), l)
			require.NoError(t, err)
			assert.EqualValues(t, 3000, result.Answered)
			assert.EqualValues(t, 1000, result.Errors)
			assert.Contains(t, result.FirstError, "no such user")
			assert.Equal(t, map[int64]int{1: 1000, 2: 1000, 3: 1000}, asked)
		})
	}
}

// TestTrafficIsCounted compares with the server's own count.
func TestTrafficIsCounted(t *testing.T) {
	server := startRedis(t)
	for _, spec := range []string{"rueidis", "go-redis"} {
		t.Run(spec, func(t *testing.T) {
			run, store := openPlan(t, spec, server.Addr, "concat_plan", 0)
			var users []int64
			ask := func() {
				answer, err := run(context.Background(), Request{UserID: 1})
				require.NoError(t, err)
				users = users[:0]
				for _, c := range answer {
					users = append(users, c.ID)
				}
			}
			ask()
			var got Traffic
			for range 20 { // A request may also cause the handshake of a further connection.
				before := store.Traffic()
				ask()
				if got = store.Traffic().Sub(before); got.RoundTrips <= 3 {
					break
				}
			}
			sent := bytesOf("hgetall", "user:1") + bytesOf("lrange", "follow:1", "0", "3") + bytesOf("lrange", "recommendation:1", "0", "3")
			for _, id := range users {
				sent += bytesOf("hgetall", "user:"+strconv.FormatInt(id, 10))
			}
			assert.Len(t, users, 8)
			assert.EqualValues(t, 11, got.Commands)
			assert.EqualValues(t, 3, got.RoundTrips)
			assert.EqualValues(t, sent, got.BytesSent)
			assert.Greater(t, got.BytesReceived, got.BytesSent/2)
		})
	}
}

// bytesOf returns the length of a command on the wire.
func bytesOf(words ...string) int {
	n := len("*1\r\n")
	for _, w := range words {
		n += len("$\r\n\r\n") + len(strconv.Itoa(len(w))) + len(w)
	}
	return n
}

// A value in memory is read again only after its key has changed. A node with fresh always reads.
func TestCachingPeers(t *testing.T) {
	x := exampleCases[0]
	for _, spec := range caching[:2] {
		t.Run(spec, func(t *testing.T) {
			server := testworld.StartRedis(t)
			require.NoError(t, x.fill(t.Context(), server.Addr, exampleNow))
			run, store := openPlan(t, spec, server.Addr, x.plan, 0)
			first := func() (title string, commands uint64) {
				before := store.Traffic().Commands
				answer, err := run(t.Context(), Request{UserID: 7, Now: seconds(exampleNow)})
				require.NoError(t, err)
				return answer[0].Post.Title, store.Traffic().Commands - before
			}
			_, cold := first()
			assert.Greater(t, cold, uint64(50))
			title, warm := first()
			assert.EqualValues(t, 1, warm, "what the user has seen")
			kept := store.Traffic().Cache
			require.NotNil(t, kept)
			assert.Equal(t, cold-1, kept.Hits)

			answer, err := run(t.Context(), Request{UserID: 7, Now: seconds(exampleNow)})
			require.NoError(t, err)
			fill(t, server.Addr, []any{"HSET", "post:" + strconv.FormatInt(answer[0].ID, 10), "title", "changed " + title})
			require.Eventually(t, func() bool {
				now, _ := first()
				return now == "changed "+title
			}, 10*time.Second, time.Millisecond)
		})
	}
}

// A caching peer is stale for as long as a message takes. A peer without a cache never is.
func TestStaleness(t *testing.T) {
	for _, spec := range []string{"rueidis", "go-redis", "rueidis-cache", "rueidis-cache:broadcast=true"} {
		server := testworld.StartRedis(t)
		_, store := openPlan(t, spec, server.Addr, "concat_plan", 0)
		probe := worker.BeginProbe(t.Context(), server.Addr, NewTarget(nil, store, Context{}))
		began := time.Now()
		require.Eventually(t, func() bool { return time.Since(began) > 300*time.Millisecond }, time.Minute, 10*time.Millisecond)
		seen, err := probe.End()
		require.NoError(t, err)
		assert.Positive(t, seen.Answers)
		if cache := store.Traffic().Cache; cache != nil {
			assert.Positive(t, cache.Hits)
			assert.Less(t, seen.Stale, seen.Answers/2, spec)
			continue
		}
		assert.Zero(t, seen.Stale, spec)
	}
}

package peers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	feeddata "github.com/rankd/rankd/examples/feed/data"
	"github.com/rankd/rankd/internal/testing/testworld"
)

// An example is a plan of package examples with its own data. Its requests differ in their
// contexts.
type example struct {
	plan     string
	users    int
	fill     func(ctx context.Context, addr string, now time.Time) error
	contexts []string
}

var exampleCases = []example{
	{
		plan: "feed", users: 60,
		fill: func(ctx context.Context, addr string, now time.Time) error {
			return feeddata.Fill(ctx, addr, feeddata.Size{Posts: 3000, Users: 60}, now)
		},
		contexts: []string{
			``, `{"country": "DE"}`, `{"country": "US", "topics": ["music", "news"]}`, `{"country": "nowhere"}`,
			fmt.Sprintf(`{"country": "JP", "topics": ["food"], "muted": [%q, %q]}`, feeddata.AuthorName(7), feeddata.AuthorName(21)),
		},
	},
}

// exampleNow is when all requests arrive.
var exampleNow = time.Date(2026, 11, 20, 12, 30, 0, 123456000, time.UTC)

// openExample opens an engine with the plan of an example.
func openExample(t testing.TB, addr string, x *example) *engine {
	t.Helper()
	o, err := examples.Options(x.plan)
	require.NoError(t, err)
	o.Redis, o.Model, o.Now = addr, rankd.Sequential, func() time.Time { return exampleNow }
	e, err := rankd.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.Close()) })
	return &engine{e}
}

// runWith returns the engine's answer to a request with a context.
func (e *engine) runWith(t testing.TB, user int64, json string) []candidate {
	t.Helper()
	request, err := e.ParseRequest(fmt.Appendf(nil, `{"user_id": %d, "context": %s}`, user, cmp.Or(json, "{}")))
	require.NoError(t, err)
	return e.rank(t, request)
}

// fields are the columns of the engine's answer that a candidate has.
func (p *Post) fields() map[string]any {
	fields := map[string]any{
		"title": p.Title, "author": p.Author, "topic": p.Topic, "author_id": p.AuthorID, "created_at": p.CreatedAt, "likes": p.Likes, "views": p.Views,
		"source_rank": p.SourceRank, "score": p.Score, "final_score": p.Final,
	}
	var sources []string
	for i, name := range []string{"follow", "popular", "similar"} {
		if p.Sources&(1<<i) != 0 {
			sources = append(sources, name)
		}
	}
	fields["source"] = sources
	if p.Sources&Popular != 0 {
		fields["popularity"], fields["popular_rank"] = p.Popularity, p.PopularRank
	}
	if p.Close {
		fields["closeness"] = p.Closeness
	}
	return fields
}

// TestExamplesAnswersAreTheEngines compares each field of each row, for all users and for an
// unknown one.
func TestExamplesAnswersAreTheEngines(t *testing.T) {
	for _, x := range exampleCases {
		server := testworld.StartRedis(t)
		require.NoError(t, x.fill(t.Context(), server.Addr, exampleNow))
		e := openExample(t, server.Addr, &x)
		for i, json := range x.contexts {
			want := make([][]candidate, x.users+1)
			for j := range want {
				want[j] = e.runWith(t, int64(j+1), json)
			}
			require.NotEmpty(t, want[0])
			brings, err := ParseContext(json)
			require.NoError(t, err)
			for _, spec := range slices.Concat(direct, caching) {
				t.Run(fmt.Sprintf("%s/context=%d/%s", x.plan, i, spec), func(t *testing.T) {
					run, _ := openPlan(t, spec, server.Addr, x.plan, 0)
					for j := range want {
						answer, err := run(t.Context(), Request{UserID: int64(j + 1), Now: seconds(exampleNow), Context: brings})
						require.NoError(t, err)
						var got []candidate
						for _, c := range answer {
							got = append(got, candidate{ID: c.ID, Fields: c.Post.fields()})
						}
						require.Equal(t, want[j], got, "user %d", j+1)
					}
				})
			}
		}
	}
}

// TestExamplesCommandsAreTheEngines compares the numbers of commands.
func TestExamplesCommandsAreTheEngines(t *testing.T) {
	for _, x := range exampleCases {
		server := testworld.StartRedis(t)
		require.NoError(t, x.fill(t.Context(), server.Addr, exampleNow))
		e := openExample(t, server.Addr, &x)
		json := x.contexts[1]
		brings, err := ParseContext(json)
		require.NoError(t, err)
		before := e.commands()
		e.runWith(t, 1, json)
		want := e.commands() - before
		for _, spec := range direct {
			run, store := openPlan(t, spec, server.Addr, x.plan, 0)
			_, err = run(t.Context(), Request{UserID: 1, Now: seconds(exampleNow), Context: brings})
			require.NoError(t, err)
			assert.Equal(t, want, store.Traffic().Commands, "%s, %s", x.plan, spec)
		}
	}
}

// The feed goes on without a source that fails, except for the inbox. The engine does the same.
func TestTheFeedSurvivesItsSources(t *testing.T) {
	x := exampleCases[0]
	server := testworld.StartRedis(t)
	require.NoError(t, x.fill(t.Context(), server.Addr, exampleNow))
	e := openExample(t, server.Addr, &x)
	brings, err := ParseContext(x.contexts[1])
	require.NoError(t, err)
	for _, key := range []string{"popular:DE", "liked:7", "friends:7", "seen:7"} {
		fill(t, server.Addr, []any{"SET", key, "not what the plan reads"})
		want := e.runWith(t, 7, x.contexts[1])
		for _, spec := range []string{"rueidis", "rueidis-cache"} {
			run, _ := openPlan(t, spec, server.Addr, x.plan, 0)
			answer, err := run(t.Context(), Request{UserID: 7, Now: seconds(exampleNow), Context: brings})
			require.NoError(t, err)
			require.Len(t, answer, len(want))
			for i, c := range answer {
				require.Equal(t, want[i], candidate{ID: c.ID, Fields: c.Post.fields()}, "without %s", key)
			}
		}
	}
	fill(t, server.Addr, []any{"SET", "inbox:7", "not what the plan reads"})
	for _, spec := range []string{"rueidis", "rueidis-cache"} {
		run, _ := openPlan(t, spec, server.Addr, x.plan, 0)
		_, err := run(t.Context(), Request{UserID: 7, Now: seconds(exampleNow), Context: brings})
		assert.ErrorContains(t, err, "WRONGTYPE")
	}
}

func TestContext(t *testing.T) {
	for _, text := range []string{`{"county": "DE"}`, `[]`, `{"hour": "x"}`} {
		_, err := ParseContext(text)
		assert.ErrorContains(t, err, "the context of requests")
	}
}

// The index agrees with a map, over many rounds in the same memory.
func TestIndex(t *testing.T) {
	var x index
	for round := range 200 {
		x.reset()
		want := map[int64]int{}
		for i := range round {
			id := int64(i*i%97) * 1_000_003
			if _, ok := want[id]; !ok {
				want[id] = i
			}
			require.Equal(t, want[id], x.put(id, i))
		}
		for id, row := range want {
			require.Equal(t, row, x.find(id))
		}
		require.Equal(t, -1, x.find(-1))
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/feed/data"
	"github.com/rankd/rankd/internal/served"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/registry"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// small is large enough for the tests.
var small = data.Size{Posts: 3000, Users: 60}

// filled returns the address of a Redis with the small data.
func filled(t *testing.T, now time.Time) string {
	t.Helper()
	redis := miniredis.RunT(t)
	var out bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &out, []string{"fill", "--redis", redis.Addr(), "--posts", "3000", "--users", "60"}, now))
	assert.Equal(t, "wrote 3000 posts and 60 users to "+redis.Addr()+"\n", out.String())
	return redis.Addr()
}

const week = 7 * 24 * time.Hour

// expected is a post that the feed may show, computed row by row from the data.
type expected struct {
	data.Post
	sources     []string
	popularRank int // from 1 in the list of the country; 0: not there
	closeness   float64
}

// candidates returns the posts that the plan scores. It leaves out duplicates, posts that the
// user saw in the last week, and muted authors.
func candidates(w *data.World, user int, country string, muted []string) map[int]*expected {
	posts := make(map[int]*expected)
	add := func(id, source string) *expected {
		n, _ := strconv.Atoi(id)
		if posts[n] == nil {
			posts[n] = &expected{Post: w.ByID[n]}
		}
		if !slices.Contains(posts[n].sources, source) {
			posts[n].sources = append(posts[n].sources, source)
		}
		return posts[n]
	}
	closeness, seen := make(map[int]float64), make(map[int]time.Time)
	for _, command := range w.OfUser(user) {
		args := command[2:]
		switch name, _, _ := strings.Cut(command[1], ":"); name {
		case "inbox":
			for _, id := range args {
				add(id, "follow")
			}
		case "liked":
			for _, liked := range args {
				n, _ := strconv.Atoi(liked)
				for _, id := range w.Similar(&w.ByID[n]) {
					add(strconv.Itoa(id), "similar")
				}
			}
		case "friends":
			for i := 0; i < len(args); i += 2 {
				author, _ := strconv.Atoi(args[i+1])
				closeness[author], _ = strconv.ParseFloat(args[i], 64) // the last one counts, as for ZADD
			}
		case "seen":
			for i := 0; i < len(args); i += 2 {
				id, _ := strconv.Atoi(args[i+1])
				at, _ := strconv.ParseInt(args[i], 10, 64)
				seen[id] = time.Unix(at, 0)
				if away := (w.Now.Sub(seen[id]) - week).Abs(); away < 5*time.Minute {
					panic("a post was seen just a week ago: the moment of the test would decide about it")
				}
			}
		}
	}
	if i := slices.Index(data.Countries(), country); i >= 0 {
		args := w.Popular(i, country)[2:]
		type scored struct{ id, likes int }
		var list []scored
		for i := 0; i < len(args); i += 2 {
			likes, _ := strconv.Atoi(args[i])
			id, _ := strconv.Atoi(args[i+1])
			list = append(list, scored{id, likes})
		}
		// Redis orders equal scores by the bytes of the member, from the highest on.
		slices.SortFunc(list, func(a, b scored) int {
			if a.likes != b.likes {
				return b.likes - a.likes
			}
			return strings.Compare(strconv.Itoa(b.id), strconv.Itoa(a.id))
		})
		list = list[:100]
		for i, p := range list {
			rank := i + 1
			for rank > 1 && list[rank-2].likes == p.likes { // equal scores share the best rank
				rank--
			}
			add(strconv.Itoa(p.id), "popular").popularRank = rank
		}
	}
	for id, p := range posts {
		if at, ok := seen[id]; ok && w.Now.Sub(at) < week || slices.Contains(muted, data.AuthorName(p.Author)) {
			delete(posts, id)
			continue
		}
		slices.Sort(p.sources)
		p.closeness = closeness[p.Author]
	}
	return posts
}

// score is the plan's formula with its boosts.
func (p *expected) score(at time.Time, chosen []string) float64 {
	age := float64(at.UnixMicro()-p.Created.Unix()*1e6) / 1e6
	score := (float64(p.Likes) + 2) / (float64(p.Views) + 50) * math.Exp2(-age/(24*3600)) * (1 + p.closeness)
	if p.popularRank > 0 {
		score += 1 / float64(60+p.popularRank)
	}
	if slices.Contains(chosen, p.Topic) {
		score *= 1.5
	}
	if slices.Contains(p.sources, "follow") && slices.Contains(p.sources, "popular") {
		score *= 1.2
	}
	return score
}

// TestFeed compares the feed with the data, post by post, on all engines. Scores depend on the
// arrival of the request, which is between two instants.
func TestFeed(t *testing.T) {
	now := time.Now()
	addr, w := filled(t, now), data.New(small, now)
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		t.Run(string(model), func(t *testing.T) {
			e, err := rankd.Open(options(t, addr, model))
			require.NoError(t, err)
			defer e.Close()
			for user := 1; user <= small.Users+1; user += 5 {
				country, chosen := data.Countries()[user%len(data.Countries())], data.Topics()[user%3:user%3+2]
				muted := []string{data.AuthorName(1 + user*7%small.Users), data.AuthorName(1 + user*11%small.Users)}
				before := time.Now()
				answer, err := e.Rank(t.Context(), rankd.Request{UserID: int64(user), Context: map[string]any{"country": country, "topics": chosen, "muted": muted}})
				after := time.Now()
				require.NoError(t, err)
				var want map[int]*expected
				if user <= small.Users {
					want = candidates(w, user, country, muted)
				} else { // a stranger gets only popular posts
					want = candidates(w, 1, country, muted)
					for id, p := range want {
						if p.popularRank == 0 {
							delete(want, id)
						}
					}
				}
				checkFeed(t, answer, want, user <= small.Users, chosen, before, after)
			}
		})
	}
}

// checkFeed compares an answer with the posts that it may show.
func checkFeed(t *testing.T, answer *rankd.Answer, want map[int]*expected, known bool, chosen []string, before, after time.Time) {
	require.Equal(t, 20, answer.Len())
	shown := make(map[int]bool)
	for c := range answer.Candidates() {
		id := int(c.ID())
		require.False(t, shown[id], "post %d is there twice", id)
		shown[id] = true
		p := want[id]
		if p == nil && !known {
			continue // that user 1 has seen
		}
		require.NotNil(t, p, "post %d is not a candidate", id)
		title, _ := c.String("title")
		assert.Equal(t, p.Title, title)
		score, ok := c.Float("final_score")
		require.True(t, ok)
		if !known {
			continue
		}
		source, _ := c.Set("source")
		assert.Equal(t, p.sources, source)
		assert.LessOrEqual(t, score, p.score(before, chosen)*(1+1e-6))
		assert.GreaterOrEqual(t, score, p.score(after, chosen)*(1-1e-6))
	}
	if !known {
		return
	}
	// No rule keeps out the best post of a stream.
	for _, followed := range []bool{true, false} {
		var rest []*expected
		for p := range maps.Values(want) {
			if slices.Contains(p.sources, "follow") == followed {
				rest = append(rest, p)
			}
		}
		slices.SortFunc(rest, func(a, b *expected) int {
			if a.score(after, chosen) > b.score(after, chosen) {
				return -1
			}
			return 1
		})
		if len(rest) > 0 {
			assert.True(t, shown[rest[0].ID], "the best post of each stream is there")
		}
	}
}

func TestTheProgramPrintsTitles(t *testing.T) {
	now := time.Now()
	var out bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &out, []string{"rank", "--redis", filled(t, now), "--user", "7", "--topics", "food,news", "--muted", data.AuthorName(3)}, now))
	assert.Equal(t, 21, strings.Count(out.String(), "\n"), out.String())
	assert.Contains(t, out.String(), "TITLE")
	assert.NotContains(t, out.String(), data.AuthorName(3)+" ")

	out.Reset()
	require.NoError(t, program().Run(t.Context(), &out, []string{"rank", "--posts", "1000", "--users", "10"}, now))
	assert.Equal(t, 21, strings.Count(out.String(), "\n"), out.String())
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "say what to do: fill or rank"},
		{[]string{"fill"}, "fill needs --redis"},
		{[]string{"serve"}, "cannot serve: say fill or rank"},
		{[]string{"rank", "--posts", "5"}, "--posts must be at least 600"},
		{[]string{"fill", "--posts", "600", "--users", "1", "--redis", "127.0.0.1:1"}, "filling Redis at 127.0.0.1:1"},
	} {
		assert.ErrorContains(t, program().Run(t.Context(), &out, c.args, now), c.want)
	}
}

// TestTheFeedSurvivesItsSources breaks one key after another. The feed goes on and says what is
// missing.
func TestTheFeedSurvivesItsSources(t *testing.T) {
	now := time.Now()
	redis := miniredis.RunT(t)
	require.NoError(t, data.Fill(t.Context(), redis.Addr(), small, now))
	e, err := rankd.Open(options(t, redis.Addr(), ""))
	require.NoError(t, err)
	defer e.Close()
	for i, key := range []string{"popular:DE", "liked:7", "friends:7", "seen:7"} {
		redis.Del(key)
		require.NoError(t, redis.Set(key, "not what the plan reads"))
		answer, err := e.Rank(t.Context(), rankd.Request{UserID: 7, Context: map[string]any{"country": "DE"}})
		require.NoError(t, err)
		assert.NotZero(t, answer.Len())
		failed := 0
		for _, node := range answer.Completeness() {
			if node.Status == rankd.NodeFailed {
				failed++
			}
		}
		assert.Equal(t, i+1, failed, "%s is broken, too", key)
	}
	redis.Del("inbox:7")
	require.NoError(t, redis.Set("inbox:7", "not what the plan reads"))
	_, err = e.Rank(t.Context(), rankd.Request{UserID: 7, Context: map[string]any{"country": "DE"}})
	assert.ErrorIs(t, err, rankd.ErrRedis, "the inbox is required")
}

// BenchmarkFeed measures a feed for one user after another, from a real Redis and from memory.
func BenchmarkFeed(b *testing.B) {
	redis := testworld.StartRedis(b)
	require.NoError(b, data.Fill(b.Context(), redis.Addr, data.Size{Posts: 20_000, Users: 1000}, time.Now()))
	o := options(b, redis.Addr, "")
	tables := o.Registry
	for _, mode := range []registry.CacheMode{registry.CacheOff, registry.CacheTTL, registry.CacheBroadcast} {
		b.Run("cache="+string(mode), func(b *testing.B) {
			o.Registry = withCache(b, tables, mode)
			e, err := rankd.Open(o)
			require.NoError(b, err)
			defer e.Close()
			rank := func(user int) {
				_, err := e.Rank(b.Context(), rankd.Request{UserID: int64(user%1000) + 1, Context: map[string]any{"country": "DE", "topics": []string{"music"}}})
				require.NoError(b, err)
			}
			for user := range 2000 {
				rank(user)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for user := range b.N {
				rank(user)
			}
		})
	}
}

// BenchmarkServed says how much more processor time a request takes when its line is written to files: of an answer of 50 rows, with
// ten columns of each. Engines with and without a log take turns, and the median of the differences counts.
func BenchmarkServed(b *testing.B) {
	redis := testworld.StartRedis(b)
	require.NoError(b, data.Fill(b.Context(), redis.Addr, data.Size{Posts: 20_000, Users: 1000}, time.Now()))
	o := options(b, redis.Addr, "")
	o.Plans, o.BusyPoll = logged(b, o.Plans), -1 // A loop that looks for replies uses the processor time that it has.
	files, err := served.NewFiles(b.TempDir(), 64<<20)
	require.NoError(b, err)
	defer files.Close()
	open := func(o rankd.Options) *rankd.Engine {
		e, err := rankd.Open(o)
		require.NoError(b, err)
		return e
	}
	without := open(o)
	defer without.Close()
	o.Served = files
	with := open(o)
	const atOnce, each = 32, 50
	rows := 0
	chunk := func(e *rankd.Engine) (cpu, bytes float64) {
		runtime.GC()
		began := load.ReadUsage()
		var all sync.WaitGroup
		for client := range atOnce {
			all.Go(func() {
				for i := range each {
					a, err := e.Rank(b.Context(), rankd.Request{UserID: int64(client*each+i)%1000 + 1, Context: map[string]any{"country": "DE", "topics": []string{"music"}}})
					assert.NoError(b, err)
					if client+i == 0 {
						rows = a.Len()
					}
				}
			})
		}
		all.Wait()
		assert.Eventually(b, func() bool { n := e.ServedLines(); return e == without || n.Written%(atOnce*each) == 0 }, time.Minute, time.Millisecond)
		used := load.ReadUsage().Since(began)
		return float64(used.CPU) / (atOnce * each), float64(used.AllocBytes) / (atOnce * each)
	}
	chunk(without)
	chunk(with)
	var plain, more, bytes []float64
	for round := 0; b.Loop(); round++ {
		engines, cpu, allocated := []*rankd.Engine{without, with}, map[*rankd.Engine]float64{}, map[*rankd.Engine]float64{}
		for i := range engines { // Each begins every other round.
			e := engines[(i+round)%2]
			cpu[e], allocated[e] = chunk(e)
		}
		plain, more = append(plain, cpu[without]), append(more, cpu[with]-cpu[without])
		bytes = append(bytes, allocated[with]-allocated[without])
	}
	require.NoError(b, with.Close())
	require.Zero(b, with.ServedLines().Dropped+with.ServedLines().Failed)
	for _, list := range [][]float64{plain, more, bytes} {
		slices.Sort(list)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(rows), "rows")
	b.ReportMetric(plain[len(plain)/2], "without-cpu-ns/request")
	b.ReportMetric(more[len(more)/2], "more-cpu-ns/request")
	b.ReportMetric(bytes[len(bytes)/2], "more-B/request")
}

// logged returns the plan of the feed with 50 rows and ten columns in its line.
func logged(t testing.TB, plans fs.FS) fs.FS {
	text, err := fs.ReadFile(plans, "feed.plan.json")
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(text, &doc))
	nodes := doc["nodes"].([]any)
	nodes[len(nodes)-1].(map[string]any)["params"] = map[string]any{"count": 50}
	doc["capabilities_required"] = append(doc["capabilities_required"].([]any), "cap.rankd.served_log.v1")
	doc["log"] = map[string]any{"columns": []int{10, 11, 12, 13, 14, 15, 16, 23, 25, 26}}
	text, err = json.Marshal(doc)
	require.NoError(t, err)
	return fstest.MapFS{"feed.plan.json": {Data: text}}
}

// withCache returns tables whose endpoint has that cache.
func withCache(t testing.TB, tables fs.FS, mode registry.CacheMode) fs.FS {
	changed := fstest.MapFS{}
	files, err := fs.ReadDir(tables, ".")
	require.NoError(t, err)
	for _, file := range files {
		text, err := fs.ReadFile(tables, file.Name())
		require.NoError(t, err)
		if strings.HasPrefix(file.Name(), "endpoints.") && mode != registry.CacheOff {
			text = fmt.Appendf(text, "[endpoint.policy]\ncache = %q\ncache_max_age_ms = 3600000\n", mode)
		}
		changed[file.Name()] = &fstest.MapFile{Data: text}
	}
	return changed
}

// options returns those of an engine with the feed.
func options(t testing.TB, redis string, model rankd.Model) rankd.Options {
	o, err := examples.Options("feed")
	require.NoError(t, err)
	o.Redis, o.Model = redis, model
	return o
}

package main

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/examples"
	"github.com/rankd/rankd/examples/articles/data"
	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// small is large enough for the tests.
var small = data.Size{Articles: 400, Users: 20}

// filled returns the address of a Redis with the small data.
func filled(t *testing.T, now time.Time) string {
	t.Helper()
	redis := miniredis.RunT(t)
	var out bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &out, []string{"fill", "--redis", redis.Addr(), "--articles", "400", "--users", "20"}, now))
	assert.Equal(t, "wrote 400 articles and the inboxes of 20 users to "+redis.Addr()+"\n", out.String())
	return redis.Addr()
}

// A reader is a request.
type reader struct {
	user       int
	context    map[string]any
	seen       []int64
	topic      string
	lang       string
	evening    bool
	subscriber bool
}

// score is the plan's formula, for one article.
func (r *reader) score(a *data.Article, at time.Time) float64 {
	score := math.Log(2+float64(a.Likes)) * math.Exp2(-float64(at.UnixMicro()-a.Created.Unix()*1e6)/1e6/(12*3600))
	if a.Topic == r.topic {
		score *= 2
	}
	if a.Lang == r.lang {
		score *= 1.5
	}
	if r.evening && slices.Contains(a.Tags, "long-read") {
		score *= 1.3
	}
	return score
}

// TestRanking compares the plan with its formula, article by article, on all engines. The score
// depends on the arrival of the request, which is between two instants.
func TestRanking(t *testing.T) {
	now := time.Now()
	addr := filled(t, now)
	o, err := examples.Options("articles")
	require.NoError(t, err)
	o.Redis = addr
	for _, model := range []rankd.Model{rankd.Reactor, rankd.Pool, rankd.Sequential} {
		o.Model = model
		e, err := rankd.Open(o)
		require.NoError(t, err)
		defer e.Close()
		for _, r := range []reader{
			{user: 1},
			{user: 2, context: map[string]any{"topic": "science", "lang": "de"}, topic: "science", lang: "de"},
			{user: 3, context: map[string]any{"hour": 20, "subscriber": true}, evening: true, subscriber: true},
			{user: 4, context: map[string]any{"hour": 9, "seen": []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}}, seen: []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{user: 21}, // has no inbox
		} {
			before := time.Now()
			answer, err := e.Rank(t.Context(), rankd.Request{UserID: int64(r.user), Context: r.context})
			after := time.Now()
			require.NoError(t, err)

			var waiting []data.Article
			for _, id := range inboxOf(r.user, now) {
				a := data.Make(id, now)
				if (!a.Premium || r.subscriber) && !slices.Contains(r.seen, int64(id)) {
					waiting = append(waiting, a)
				}
			}
			slices.SortFunc(waiting, func(a, b data.Article) int { return cmp.Compare(r.score(&b, before), r.score(&a, before)) })
			require.Equal(t, min(10, len(waiting)), answer.Len())
			i := 0
			for c := range answer.Candidates() {
				want := &waiting[i]
				i++
				score, ok := c.Float("score")
				require.True(t, ok)
				assert.LessOrEqual(t, score, r.score(want, before)*(1+1e-9))
				assert.GreaterOrEqual(t, score, r.score(want, after)*(1-1e-9))
				title, _ := c.String("title")
				assert.Equal(t, want.Title, title)
				tags, _ := c.Set("tags")
				assert.ElementsMatch(t, want.Tags, tags)
			}
		}
	}
}

// inboxOf returns the articles in the inbox of a user.
func inboxOf(user int, now time.Time) (ids []int) {
	if user > small.Users {
		return nil
	}
	command := data.InboxCommand(user, small, now)
	for i := 3; i < len(command); i += 2 {
		ids = append(ids, atoi(command[i]))
	}
	return ids
}

func atoi(digits string) (n int) {
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}

func TestTheProgramPrintsTitles(t *testing.T) {
	now := time.Now()
	var out bytes.Buffer
	require.NoError(t, program().Run(t.Context(), &out, []string{"rank", "--redis", filled(t, now), "--user", "7", "--topic", "food"}, now))
	assert.Equal(t, 11, strings.Count(out.String(), "\n"), out.String())
	assert.Contains(t, out.String(), "TITLE")

	out.Reset()
	require.NoError(t, program().Run(t.Context(), &out, []string{"rank", "--articles", "50", "--users", "10"}, now))
	assert.Equal(t, 11, strings.Count(out.String(), "\n"), out.String())
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "say what to do: fill or rank"},
		{[]string{"fill"}, "fill needs --redis"},
		{[]string{"serve"}, "cannot serve: say fill or rank"},
		{[]string{"fill", "--redis", "127.0.0.1:1"}, "filling Redis at 127.0.0.1:1"},
		{[]string{"rank", "--redis", filled(t, now), "--user", "0"}, "user_id"},
	} {
		assert.ErrorContains(t, program().Run(t.Context(), &out, c.args, now), c.want)
	}
}

package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/devredis"
)

// A library that gnet uses starts two goroutines from init.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// TestScenarios opens each plan, reads its context and users, and sends a request for its last
// user.
func TestScenarios(t *testing.T) {
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			redis, err := devredis.StartWith(nil)
			require.NoError(t, err)
			defer redis.Close()
			if !s.Example { // the examples test their own data, which takes seconds to write
				require.NoError(t, s.Fill(t.Context(), redis.Addr()))
			}
			tables, err := s.Registry()
			require.NoError(t, err)
			plans, err := s.Plans()
			require.NoError(t, err)
			models, err := s.Models()
			require.NoError(t, err)
			e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Model: rankd.Sequential, Registry: tables, Plans: plans, Models: models, Plan: s.Name})
			require.NoError(t, err)
			defer e.Close()
			all, err := load.ParseUsers(s.Users, "")
			require.NoError(t, err)
			last := all.IDs[len(all.IDs)-1]
			user := fmt.Sprint(last)
			if all.Name != "" {
				user = strconv.Quote(strings.Replace(all.Name, "{}", user, 1))
			}
			doc := fmt.Sprintf(`{"user_id": %s, "context": %s}`, user, cmp.Or(s.Context, "{}"))
			request, err := e.ParseRequest([]byte(doc))
			require.NoError(t, err)
			answer, err := e.Rank(t.Context(), request)
			require.NoError(t, err)
			assert.Equal(t, !s.Example, answer.Len() > 0)
		})
	}
}

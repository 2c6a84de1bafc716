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
			o, err := s.Options()
			require.NoError(t, err)
			o.Redis, o.Model = redis.Addr(), rankd.Sequential
			e, err := rankd.Open(o)
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

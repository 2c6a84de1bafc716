package respfront

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
	"github.com/rankd/rankd/task"
)

// addUserPlan adds the plan "user", whose answer is the user's id. Every fifth user fails.
// Every seventh waits until the request's time is over. The others end out of order.
func addUserPlan(o *rankd.Options) {
	o.Tasks = append(o.Tasks, task.Spec{Op: "test::user", Output: task.Source, Run: func(c *task.Ctx) (rowset.RowSet, error) {
		switch {
		case c.UserID%5 == 0:
			return rowset.RowSet{}, fmt.Errorf("user %d fails", c.UserID)
		case c.UserID%7 == 0:
			<-c.Context().Done()
			return rowset.RowSet{}, task.ErrCancelled
		}
		time.Sleep(time.Duration(c.UserID%3) * 50 * time.Microsecond)
		return rowset.Dense(&rowset.Batch{IDs: []int64{c.UserID}}), nil
	}})
	o.Plans.(fstest.MapFS)["user.plan.json"] = &fstest.MapFile{Data: []byte(
		`{"schema_version": 1, "plan_name": "user", "nodes": [{"node_id": "out", "op": "test::user", "inputs": []}], "outputs": ["out"]}`)}
	o.Timeout, o.MaxInflight, o.MaxQueue = 2*time.Millisecond, 4, 2
}

// placeOf matches what may be in a user's place. A request may run out of time, or find the
// engine full.
func placeOf(user string) *regexp.Regexp {
	own := `-BADREQ .* got "` + user + `"`
	if n, err := strconv.Atoi(user); err == nil {
		own = fmt.Sprintf(`\$\d+ \{.*"candidates":\[\{"id":%d\}\]\}`, n)
		if n%5 == 0 {
			own = fmt.Sprintf(`-INTERNAL .*user %d fails`, n)
		}
	}
	return regexp.MustCompile(`^(` + own + `|-TIMEOUT .*|-OVERLOADED .*)$`)
}

// checkPlaces reads the replies to RANK.MANY and PING commands. The last reply may say instead
// why the session ends. All replies before it must be whole, and each place must be that of its
// user.
func checkPlaces(t *testing.T, said []string, out string, finished bool) (refused bool) {
	r := bufio.NewReader(strings.NewReader(out))
	for _, line := range said {
		words := strings.Fields(line)
		head, err := r.Peek(1)
		require.NoError(t, err, "a reply is missing to %s", line)
		if head[0] == '-' {
			reply, err := servetest.ReadReply(r)
			require.NoError(t, err)
			require.Regexp(t, `^-(TOOLARGE Request too large: \d+ bytes may wait|OVERLOADED Overloaded: all connections together)`, reply)
			require.True(t, finished, "the session ends")
			refused = true
			break
		}
		if words[0] == "PING" {
			reply, err := servetest.ReadReply(r)
			require.NoError(t, err)
			require.Equal(t, "+PONG\r\n", reply)
			continue
		}
		users := words[2:]
		header, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("*%d\r\n", len(users)), header)
		for i, user := range users {
			reply, err := servetest.ReadReply(r)
			require.NoError(t, err, "place %d of %s", i, line)
			require.Regexp(t, placeOf(user), readable(reply), "place %d of %s", i, line)
			require.NotContains(t, reply, "all connections together", "a refusal of the session")
		}
	}
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	return refused
}

// TestPlacesBelongToTheirUsers sends random arrays in RESP2 and in RESP3. Their requests fail,
// run out of time and find the engine full, and too many bytes follow them. The bytes come in
// two pieces, cut at each place.
func TestPlacesBelongToTheirUsers(t *testing.T) {
	o := Options{Options: session.Options{MaxPipeline: 3, MaxRequestBytes: 500, MaxUnreadBytes: strangerBytesMax}}
	for name, test := range map[string]struct {
		backlog int
		behind  string // after the random commands
	}{
		"too much for the connection": {150, strings.Repeat("PING\r\n", 200)},
		"too much for all together":   {1 << 20, strings.Repeat("PING\r\n", strangerBytesMax/len("PING\r\n")+1)},
		"little enough":               {1 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.MaxBacklogBytes = test.backlog
			w := newWorld(t, allPlans(t), o, addUserPlan)
			random := rand.New(rand.NewPCG(1, 2))
			cuts, refused := 0, 0
			for round := range 2 {
				said := randomArrays(random)
				data := append(commands(said...), test.behind...)
				for range strings.Count(test.behind, "PING") {
					said = append(said, "PING")
				}
				for cut := 0; cut < len(data)-len(test.behind); cut++ {
					c := w.wire()
					if round%2 == 1 {
						w.onLoop(func() {
							c.receive(commands("HELLO 3"))
							c.out.Reset()
						})
					}
					w.onLoop(func() { c.receive(data[:cut]) })
					w.onLoop(func() { c.receive(data[cut:]) })
					w.rest(t, c)
					w.hangUp(c)
					if checkPlaces(t, said, c.out.String(), c.finished) {
						refused++
					}
					cuts++
				}
			}
			assert.Equal(t, test.behind != "", refused > cuts/2, "%d of %d are refused", refused, cuts)
			w.onLoop(func() { assert.Zero(t, w.Unread()) })
		})
	}
}

// randomArrays returns a few RANK.MANY and PING commands. The last one has more users than a
// session may have requests.
func randomArrays(random *rand.Rand) (said []string) {
	users := func(n int) string {
		line := "RANK.MANY user"
		for range n {
			user := strconv.Itoa(1 + random.IntN(99))
			if random.IntN(8) == 0 {
				user = "x" + user
			}
			line += " " + user
		}
		return line
	}
	for range random.IntN(3) {
		said = append(said, users(1+random.IntN(4)))
		if random.IntN(2) == 0 {
			said = append(said, "PING")
		}
	}
	return append(said, users(5+random.IntN(8)))
}

// allPlans returns a store whose only caller may ask for all plans.
func allPlans(t *testing.T) *access.Store {
	caller, err := access.NewCaller(access.Rules{Name: "anyone", Plans: []string{"*"}})
	require.NoError(t, err)
	return access.Anyone(caller)
}

// TestARevokedTokenEndsWithinRankMany revokes a token while the first users of an array run.
func TestARevokedTokenEndsWithinRankMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.toml")
	require.NoError(t, os.WriteFile(path, []byte(servetest.Token("first", "first", servetest.AllPlans)+servetest.Token("second", "second", servetest.AllPlans)), 0o600))
	store, err := access.Open(path)
	require.NoError(t, err)
	w := newWorld(t, store, Options{Options: session.Options{MaxPipeline: 2}}, nil)
	c := w.wire()
	w.onLoop(func() { c.receive(commands("AUTH first", "RANK.MANY gated 1 2 3 4 5", "PING")) })
	<-w.gate.entered
	<-w.gate.entered
	require.NoError(t, os.WriteFile(path, []byte(servetest.Token("second", "second", servetest.AllPlans)), 0o600))
	_, err = store.Reload()
	require.NoError(t, err)
	w.gate.passAll()
	w.rest(t, c)
	w.hangUp(c)
	const row = `"candidates":[{"id":1}]`
	assert.Equal(t, 2, strings.Count(c.out.String(), row), "those that ran")
	assert.Equal(t, 4, strings.Count(c.out.String(), "-NOAUTH "), "three users and the PING: %s", c.out.String())
}

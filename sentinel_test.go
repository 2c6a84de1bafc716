package rankd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testworld"
)

// A master that sentinels know is killed, and its replica takes over: all models follow within a second of the election. Then it is moved by hand, and no request
// gets an answer from the old one.
func TestAMasterThatSentinelsMove(t *testing.T) {
	for _, model := range models {
		t.Run(string(model), func(t *testing.T) { aMasterThatSentinelsMove(t, model, "") })
	}
	for _, mode := range trackedModes {
		t.Run("cache "+mode, func(t *testing.T) { aMasterThatSentinelsMove(t, rankd.Reactor, "cache = \""+mode+"\"\n") })
	}
}

func aMasterThatSentinelsMove(t *testing.T, model rankd.Model, policy string) {
	t.Parallel()
	const patience = 90 * time.Second // Sentinels on a busy machine do nothing for half a minute (TILT).
	s := testworld.StartRedisSentinels(t, 2, 2)
	s.Do(t, 0, "HSET", "user:1", "country", "DE")
	require.Eventually(t, func() bool { return s.Do(t, 1, "EXISTS", "user:1") == "1" }, 10*time.Second, 5*time.Millisecond)
	e := open(t, rankd.Options{Redis: s.Addr(), Model: model, Registry: cacheTables(policy), Plans: viewerPlan})
	country := func() (country string, err error) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
		if err != nil {
			return "", err
		}
		for c := range a.Candidates() {
			country, _ = c.String("country")
		}
		return country, nil
	}
	got, err := country()
	require.NoError(t, err)
	require.Equal(t, "DE", got)
	s.Nodes[0].Kill()
	says := func(node int, want string, args ...string) bool {
		text, err := s.Try(node, args...)
		return err == nil && strings.Contains(text, want)
	}
	named := func(node int) bool {
		return says(2, fmt.Sprint(s.Nodes[node].Port), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", testworld.MasterName)
	}
	var elected time.Time
	require.Eventually(t, func() bool {
		if elected.IsZero() && named(1) {
			elected = time.Now()
			s.Do(t, 1, "HSET", "user:1", "country", "FR")
		}
		got, err := country()
		return err == nil && got == "FR"
	}, patience, 10*time.Millisecond)
	require.False(t, elected.IsZero())
	t.Logf("the engine followed %v after the election", time.Since(elected))
	assert.Less(t, time.Since(elected), 5*time.Second, "a second on a machine that has nothing else to do")
	// The old master comes back as a replica, and is made the master again.
	s.Nodes[0].Restart(t)
	require.Eventually(t, func() bool {
		return says(0, "master_link_status:up", "INFO", "replication") || says(0, "none", "REPLICAOF", "127.0.0.1", fmt.Sprint(s.Nodes[1].Port))
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return says(2, "OK", "SENTINEL", "FAILOVER", testworld.MasterName) }, patience, 100*time.Millisecond)
	require.Eventually(t, func() bool { return named(0) && says(0, "0", "HSET", "user:1", "country", "PL") }, patience, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		got, err := country()
		return err == nil && got == "PL"
	}, 10*time.Second, 10*time.Millisecond)
}

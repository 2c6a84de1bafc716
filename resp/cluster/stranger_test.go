package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/resp"
)

// TestStrangers: what the nodes of a cluster of one master and one replica answer after a change, and whom a client
// follows. The master is the node that the user has named.
func TestStrangers(t *testing.T) {
	const before = "0 16383 m:1 r:2"
	reset := rows("0 16383 r:2#new") // r:2 was reset, and is a cluster of its own
	for name, c := range map[string]struct {
		maps    map[string]string
		startup []string
		first   string // the first map
		at      string // of slot 0, afterwards
		refused bool
		turns   int
	}{
		"a replica that was reset":                 {map[string]string{"m:1": rows("0 16383 m:1"), "r:2": reset}, []string{"m:1"}, before, "m:1", false, 0},
		"a replica that was reset and kept its id": {map[string]string{"m:1": rows("0 16383 m:1"), "r:2": rows("0 16383 r:2")}, []string{"m:1"}, before, "m:1", false, 0},
		"a failover while the named node is dead":  {map[string]string{"r:2": rows("0 16383 r:2")}, []string{"m:1"}, before, "r:2", false, 1},
		"a failover, and the named node follows":   {map[string]string{"m:1": rows("0 16383 r:2 m:1"), "r:2": rows("0 16383 r:2 m:1")}, []string{"m:1"}, before, "r:2", false, 1},
		"a named node that came back empty":        {map[string]string{"m:1": "*0\r\n", "r:2": rows("0 16383 r:2")}, []string{"m:1"}, before, "r:2", false, 1},
		"another cluster at the named address":     {map[string]string{"m:1": rows("0 16383 m:1#new")}, []string{"m:1"}, before, "m:1", false, 1},
		"named nodes that do not agree":            {map[string]string{"m:1": rows("0 16383 m:1#new"), "n:3": rows("0 16383 n:3#other")}, []string{"m:1", "n:3"}, before, "m:1", true, 1},
		"one of three replicas was reset, and the named master is dead": {
			map[string]string{"a:2": rows("0 16383 a:2#new"), "b:3": rows("0 16383 b:3 c:4"), "c:4": rows("0 16383 b:3 c:4")}, []string{"m:1"}, "0 16383 m:1 a:2 b:3 c:4", "b:3", false, 1,
		},
		"two replicas that do not agree": {
			map[string]string{"a:2": rows("0 16383 a:2#na"), "b:3": rows("0 16383 b:3#nb")}, []string{"m:1"}, "0 16383 m:1 a:2 b:3", "m:1", true, 1,
		},
		"a liar": {map[string]string{"m:1": rows(before), "r:2": rows("0 8191 x:9", "8192 16383 y:9")}, []string{"m:1"}, before, "m:1", false, 0},
		"a map of an hour ago": {
			map[string]string{"m:1": rows(before), "r:2": rows("0 16383 old:9 r:2")}, []string{"m:1"}, before, "m:1", false, 0,
		},
		"half a map of another cluster": {map[string]string{"m:1": rows("0 8191 m:1"), "r:2": reset}, []string{"m:1"}, before, "m:1", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) { // Whom a refresh asks first is a draw.
				var turns []resp.ClusterTurn
				w := newWorld(t, map[string]string{}, c.startup...)
				w.State = NewState(c.startup, seed)
				w.OnTurn(func(turn resp.ClusterTurn) { turns = append(turns, turn) })
				for _, addr := range c.startup {
					w.maps[addr] = rows(c.first)
				}
				w.refresh()
				require.Equal(t, "m:1", w.at(0))
				w.maps = c.maps
				for range 10 {
					w.now += 2 * 60 * second
					w.refresh()
					require.Equal(t, c.at, w.at(0), "seed %d", seed)
				}
				require.Len(t, turns, c.turns, "seed %d: %v", seed, turns)
				if c.turns > 0 {
					assert.Equal(t, c.refused, turns[0].Refused)
				}
			}
		})
	}
}

// A client that has followed another cluster because nobody else answered comes back once a named node does.
func TestTheNamedClusterComesBack(t *testing.T) {
	w := newWorld(t, map[string]string{"m:1": rows("0 16383 m:1 r:2")}, "m:1")
	w.refresh()
	w.maps = map[string]string{"r:2": rows("0 16383 r:2#new")}
	w.now += 60 * second
	w.refresh()
	require.Equal(t, "r:2", w.at(0), "only r:2 answers")
	w.maps["m:1"] = rows("0 16383 m:1")
	w.now += 60 * second
	w.refresh()
	assert.Equal(t, "m:1", w.at(0))
	w.now += 60 * second
	w.refresh()
	assert.Equal(t, "m:1", w.at(0))
}

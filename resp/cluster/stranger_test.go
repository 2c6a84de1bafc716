package cluster

import (
	"strings"
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

// TestServersWithAnotherID: what a server answers to CLUSTER MYID at the address of a node that the map calls "id1".
func TestServersWithAnotherID(t *testing.T) {
	refusal := func(text string) error { return &resp.ServerError{Message: text} }
	const other = "another server is at the address of a node of the Redis Cluster: "
	for name, c := range map[string]struct {
		addr, id string
		err      error
		refused  string
		unknown  bool
	}{
		"the node":                   {"m:1", "id1", nil, "", false},
		"another node":               {"m:1", "id9", nil, other + `its id is "id9", and that of the node "id1"`, false},
		"another node at a replica":  {"r:2", "id1", nil, other + `its id is "id1", and that of the node "id2"`, false},
		"an address that no map has": {"x:9", "id9", nil, "", false},
		"a node without an id":       {"n:3", "id9", nil, "", false},
		"no cluster":                 {"m:1", "", refusal("ERR This instance has cluster support disabled"), other + "ERR This instance has cluster support disabled", false},
		"no cluster, and no id":      {"n:3", "", refusal("ERR This instance has cluster support disabled"), "", false},
		"no permission":              {"m:1", "", refusal("NOPERM no"), "", true},
		"an old server":              {"m:1", "", refusal("ERR unknown command 'CLUSTER'"), "", true},
		"not an id":                  {"m:1", "", errAddress, "", true},
		"a server that loads":        {"m:1", "", refusal("LOADING Redis is loading"), "LOADING Redis is loading", false},
		"a busy server":              {"m:1", "", refusal("BUSY Redis is busy"), "BUSY Redis is busy", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"m:1": rows("0 100 m:1#id1 r:2#id2", "101 16383 n:3#")}, "m:1")
			w.refresh()
			w.Node("x:9")
			refused, unknown := w.Identify(c.addr, c.id, c.err, w.now)
			assert.Equal(t, c.unknown, unknown)
			if c.refused == "" {
				require.NoError(t, refused)
			} else {
				require.ErrorContains(t, refused, c.refused)
			}
			assert.Equal(t, strings.HasPrefix(c.refused, other), w.Strange(c.addr))
			assert.Equal(t, strings.HasPrefix(c.refused, other), w.Suspects())
			_, unknown = w.Identify(c.addr, c.id, c.err, w.now)
			assert.False(t, unknown, "once")
		})
	}
}

// Servers with another id are told of once in a while. A map decides who is right: a connection that was made before it
// named another id must end, and a server whose id it names is no longer strange.
func TestAMapDecidesWhoIsAtAnAddress(t *testing.T) {
	var turns []resp.ClusterTurn
	w := newWorld(t, map[string]string{"m:1": rows("0 16383 m:1#id1")}, "m:1")
	w.OnTurn(func(turn resp.ClusterTurn) { turns = append(turns, turn) })
	_, _ = w.Identify("m:1", "id0", nil, w.now) // before any map
	w.refresh()
	require.ErrorIs(t, w.Ousted("m:1"), errStranger)
	for range 100 {
		refused, _ := w.Identify("m:1", "id9", nil, w.now)
		require.Error(t, refused)
		w.now += second
	}
	require.Len(t, turns, 4, "in 100 s")
	assert.True(t, turns[0].Refused)
	assert.Equal(t, "m:1", turns[0].Asked)
	w.refresh()
	require.NoError(t, w.Ousted("m:1"), "the connections were refused")
	assert.True(t, w.Strange("m:1"))
	w.maps["m:1"] = rows("0 16383 m:1#id9")
	w.now += 60 * second
	w.refresh()
	assert.False(t, w.Strange("m:1"))
	refused, _ := w.Identify("m:1", "id9", nil, w.now)
	require.NoError(t, refused)
	w.maps["m:1"] = rows("0 99 n:2#id2", "100 16383 :0#id9") // The node has no address.
	w.now += 60 * second
	w.refresh()
	require.ErrorIs(t, w.Ousted("m:1"), errStranger)
	require.Equal(t, "m:1", w.at(100), "nobody else has its slots")
	w.maps["m:1"] = rows("0 16383 n:2#id9") // The node has another address.
	w.now += 60 * second
	w.refresh()
	require.NoError(t, w.Ousted("m:1"))
	w.Forget(w.Node("m:1"))
	w.now += 60 * second
	w.refresh()
	assert.Len(t, w.parties, 1, "what nobody names is forgotten")
}

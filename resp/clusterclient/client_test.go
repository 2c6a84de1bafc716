package clusterclient

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// keys returns GET commands for keys of nodes.
func (w *world) gets(nodes ...int) (commands, want []string) {
	for i, node := range nodes {
		key := w.keyOf(node, i)
		commands, want = append(commands, "GET "+key), append(want, key)
	}
	return commands, want
}

// since forgets the commands so far, and returns those that nodes receive while fn runs.
func (w *world) since(fn func()) []string {
	w.commands = nil
	fn()
	return slices.DeleteFunc(slices.Clone(w.commands), func(c string) bool { return strings.Contains(c, " CLUSTER ") })
}

// The replies of a call over all nodes are in the order of its commands. Each node gets one
// write.
func TestCallsAreSplitByNode(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	commands, want := w.gets(0, 1, 2, 0, 1, 2, 2, 1)
	o := w.do(c, commands...)
	w.wait(o)
	require.NoError(t, o.err)
	assert.Equal(t, want, o.got)
	before := c.Stats()
	o, p := w.do(c, commands...), w.do(c, commands...)
	w.wait(o, p)
	assert.Equal(t, want, o.got)
	assert.Equal(t, want, p.got)
	after := c.Stats()
	assert.EqualValues(t, 3, after.RoundTrips-before.RoundTrips, "one write for each node")
	assert.EqualValues(t, 2*len(want), after.Asked-before.Asked)
	assert.EqualValues(t, len(want), after.Commands-before.Commands, "equal reads are one command")
	assert.Equal(t, 3, after.Nodes)
	assert.EqualValues(t, 3, after.Batches)
	assert.EqualValues(t, 1, after.Refreshes)
	p = w.do(c, "PING", commands[1])
	w.wait(p)
	assert.Equal(t, []string{"PONG", want[1]}, p.got)
	w.end(c)
}

// The calls are an empty one, one whose deadline has passed, and one after Close.
func TestCallsWithoutWork(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	empty := w.do(c)
	w.wait(empty)
	require.NoError(t, empty.err)
	late := &outcome{call: &resp.Call{Deadline: w.sim.Now()}}
	late.call.Batch.Cmd("GET", "x")
	w.start(c, late)
	w.wait(late)
	require.ErrorIs(t, late.err, resp.ErrDeadline)
	w.sim.After(0, c.Close)
	closed := w.do(c, "GET x")
	w.wait(closed)
	require.ErrorIs(t, closed.err, resp.ErrClosed)
	w.end(c)
}

// After MOVED and ASK the client sends again, at once, only the commands that they answer. It
// remembers where a slot has moved.
func TestRedirectedCommandsAreSentAgainInPlace(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	commands, want := w.gets(0, 1, 2, 0)
	w.wait(w.do(c, commands...))
	for _, again := range []struct {
		reply string
		sent  []string
	}{
		{"-MOVED 5 n9:1\r\n", nil}, // filled in below: an address where nobody answers
		{"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", []string{"1 " + commands[1]}},
		{"-READONLY You can't write against a read only replica.\r\n", []string{"1 " + commands[1]}},
		{"-MOVED 5 n1:1\r\n", []string{"1 " + commands[1]}}, // to itself
	} {
		w.instead[want[1]] = again.reply
		var o *outcome
		sent := w.since(func() {
			o = w.do(c, commands...)
			w.wait(o)
		})
		require.NoError(t, o.err)
		if again.sent == nil {
			assert.Contains(t, o.got[1], "redis n9:1: cannot connect")
			assert.Equal(t, []string{want[0], want[2], want[3]}, slices.Delete(o.got, 1, 2))
			continue
		}
		assert.Equal(t, want, o.got, again.reply)
		assert.Equal(t, again.sent, sent[4:], again.reply)
	}
	moved := 0
	for i := range w.Owner {
		if w.Owner[i] == 1 {
			w.Owner[i] = 2
			moved++
		}
	}
	require.NotZero(t, moved)
	var o *outcome
	sent := w.since(func() { o = w.do(c, commands...); w.wait(o) })
	assert.Equal(t, want, o.got)
	assert.Equal(t, []string{"1 " + commands[1], "2 " + commands[1]}, slices.DeleteFunc(sent, func(s string) bool { return !strings.HasSuffix(s, commands[1]) }))
	sent = w.since(func() { o = w.do(c, commands...); w.wait(o) })
	assert.Equal(t, want, o.got)
	assert.Len(t, sent, 4, "the slot is known")
	w.run(func() bool { return c.Stats().Nodes == 2 }) // A map has come: node 1 has no slots, and n9 never had any.
	w.end(c)
}

// An error that concerns the node names it; one that concerns the command is as the node has sent it.
func TestRefusalsNameTheNode(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	commands, want := w.gets(0, 1, 2)
	for reply, told := range map[string]string{
		"CLUSTERDOWN The cluster is down": "redis n1:1: CLUSTERDOWN The cluster is down (", "NOPERM no": "redis n1:1: NOPERM no (", "WRONGTYPE x": "WRONGTYPE x",
	} {
		w.instead[want[1]] = "-" + reply + "\r\n"
		o := w.do(c, commands...)
		w.wait(o)
		require.NoError(t, o.err)
		assert.Equal(t, []string{want[0], want[2]}, []string{o.got[0], o.got[2]})
		assert.True(t, strings.HasPrefix(o.got[1], told), o.got[1])
	}
	w.end(c)
}

// Several commands are sent again together, to one node and in another order than before. Their
// replies are still in the order of the call.
func TestRedirectedCommandsKeepTheirOrder(t *testing.T) {
	together := 0
	for seed := range uint64(20) { // Either node may answer first.
		w := newWorld(t, seed, 2, simnet.Config{})
		c := w.client(resp.Options{})
		commands, want := w.gets(1, 0, 0)
		w.wait(w.do(c, commands...))
		const later = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
		w.instead[want[1]] = fmt.Sprintf("-MOVED %d %s\r\n", cluster.Slot([]byte(want[0])), addrOf(0))
		w.instead[want[0]], w.instead[want[2]] = later, later
		o := w.do(c, commands...)
		w.run(func() bool { return c.retrying == 1 && len(w.instead) == 0 })
		for i := range w.Owner {
			w.Owner[i] = 0
		}
		sent := w.since(func() { w.wait(o) })
		if slices.Equal(sent, []string{"0 " + commands[1], "0 " + commands[2], "0 " + commands[0]}) {
			together++
		}
		assert.Equal(t, want, o.got)
		w.end(c)
	}
	assert.NotZero(t, together)
}

// After ASK the command leaves after ASKING, on the connection of the importing node. The slot
// stays where it is.
func TestAskingGoesBeforeItsCommand(t *testing.T) {
	for _, inflight := range []int{0, 1, 2, 3} {
		t.Run(strconv.Itoa(inflight), func(t *testing.T) { askingGoesBeforeItsCommand(t, inflight) })
	}
}

func askingGoesBeforeItsCommand(t *testing.T, inflight int) {
	w := newWorld(t, 1, 2, simnet.Config{})
	c := w.client(resp.Options{MaxInflight: inflight})
	commands, want := w.gets(0, 0, 0, 0, 0, 0, 1)
	w.wait(w.do(c, commands...))
	for i := range w.Target {
		if w.Owner[i] == 0 {
			w.Target[i] = 1
		}
	}
	var o, p *outcome
	sent := w.since(func() {
		o, p = w.do(c, commands...), w.do(c, commands...)
		w.wait(o, p)
	})
	assert.Equal(t, want, o.got)
	assert.Equal(t, want, p.got)
	asked := 0
	for i, command := range sent {
		if command == "1 ASKING" {
			asked++
			assert.Contains(t, commands, strings.TrimPrefix(sent[i+1], "1 "))
		}
	}
	assert.NotZero(t, asked)
	assert.EqualValues(t, asked, c.Stats().Redirected)
	w.end(c)
}

// A dead node fails the commands that were sent to it, with an error that names it. After
// another node has taken its slots, nothing fails.
func TestADeadNodeFailsOnlyItsCommands(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	commands, want := w.gets(0, 1, 2, 1)
	w.wait(w.do(c, commands...))
	w.sim.After(0, func() { w.net.SetDown(addrOf(1), true) })
	o, alone := w.do(c, commands...), w.do(c, commands[1])
	w.wait(o, alone)
	require.NoError(t, o.err)
	assert.Equal(t, []string{want[0], want[2]}, []string{o.got[0], o.got[2]})
	for _, k := range []int{1, 3} {
		assert.Contains(t, o.got[k], "redis n1:1: ")
	}
	require.NoError(t, alone.err)
	assert.Contains(t, alone.got[0], "redis n1:1: ")
	assert.EqualValues(t, 2, c.Stats().Failed)
	for range 2 {
		w.wait(w.do(c, commands...))
	}
	before := c.Stats()
	assert.EqualValues(t, 4, before.Failed, "each call counts")
	for i := range w.Owner {
		if w.Owner[i] == 1 {
			w.Owner[i] = 2
		}
	}
	w.run(func() bool { return c.state.Suspects() == false || c.state.Due().Passed(w.sim.Now()) })
	w.sim.MoveTo(w.sim.Now().Add(200 * time.Millisecond))
	w.wait(w.do(c, "PING")) // A request comes, and the client asks for the map.
	w.sim.MoveTo(w.sim.Now().Add(200 * time.Millisecond))
	o = w.do(c, commands...)
	w.wait(o)
	assert.Equal(t, want, o.got)
	after := c.Stats()
	assert.Equal(t, 2, after.Nodes, "the dead one is forgotten")
	assert.GreaterOrEqual(t, after.Asked, before.Asked+5, "what it was asked is not")
	assert.Greater(t, after.Commands, before.Commands)
	assert.Equal(t, before.Failed, after.Failed)
	w.end(c)
}

// A burst of timeouts reveals a silent node. The client then asks another node for the map if
// it has asked a silent one.
func TestAMuteNodeIsFound(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{Addr: addrOf(0) + "," + addrOf(1), RequestTimeout: 50 * time.Millisecond, ConnectTimeout: 100 * time.Millisecond})
	commands, want := w.gets(0, 1, 2)
	w.wait(w.do(c, commands...))
	w.nodes[1].mute = true
	for range 3 {
		o := w.do(c, commands...)
		w.wait(o)
		assert.Equal(t, []string{want[0], want[2]}, []string{o.got[0], o.got[2]})
		assert.Contains(t, o.got[1], "redis n1:1: timeout")
	}
	for i := range w.Owner {
		if w.Owner[i] == 1 {
			w.Owner[i] = 2
		}
	}
	last := w.do(c, "PING")
	w.wait(last)
	w.sim.MoveTo(w.sim.Now().Add(time.Second))
	w.wait(w.do(c, "PING"))
	w.sim.MoveTo(w.sim.Now().Add(time.Second))
	o := w.do(c, commands...)
	w.wait(o)
	assert.Equal(t, want, o.got)
	w.end(c)
}

// Calls fail as those of a client whose server is dead, if no node answers.
func TestNoNodeAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // to CLUSTER SLOTS; "": the nodes are dead; "mute": they say nothing
		want   error
		text   string
	}{
		"dead":       {"", resp.ErrConnect, "redis n0:1,n1:1: cannot connect"},
		"mute":       {"mute", resp.ErrConnect, "redis n0:1,n1:1: cannot connect"},
		"no cluster": {"-ERR This instance has cluster support disabled\r\n", resp.ErrConnect, "cluster support disabled"},
		"malformed":  {":1\r\n", resp.ErrConnect, "CLUSTER SLOTS"},
		"no slots":   {"*0\r\n", resp.ErrConnect, "no node of the Redis Cluster has slots"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, 2, simnet.Config{})
			client := w.client(resp.Options{Addr: addrOf(0) + "," + addrOf(1), ConnectTimeout: 100 * time.Millisecond})
			w.lie = func() (string, bool) { return c.answer, true }
			for i, node := range w.nodes {
				w.net.SetDown(addrOf(i), c.answer == "")
				node.mute = c.answer == "mute"
			}
			before := w.sim.Now()
			o := w.do(client, "GET x")
			w.wait(o)
			assert.LessOrEqual(t, w.sim.Now().Sub(before), 110*time.Millisecond, "a call without a deadline waits ConnectTimeout")
			require.ErrorIs(t, o.err, c.want)
			assert.ErrorContains(t, o.err, c.text)
			w.run(func() bool { return client.state.Asked() == "" })
			w.lie = nil
			for i, node := range w.nodes {
				w.net.SetDown(addrOf(i), false)
				node.mute = false
			}
			w.sim.MoveTo(w.sim.Now().Add(time.Second))
			o = w.do(client, "GET x")
			w.wait(o)
			require.NoError(t, o.err)
			assert.Equal(t, []string{"x"}, o.got)
			w.end(client)
		})
	}
}

// A call that is cancelled ends once, wherever it is. So does a call whose client is closed,
// and one whose deadline comes in a pause.
func TestCallsEndEarly(t *testing.T) {
	commandsOf := func(w *world) []string { c, _ := w.gets(0, 1, 0, 1); return c }
	for name, prepare := range map[string]func(w *world, c *Client){
		"before the map": func(w *world, _ *Client) {
			for _, s := range w.nodes {
				s.mute = true
			}
		},
		"on its way": func(w *world, c *Client) {
			w.wait(w.do(c, commandsOf(w)...))
			w.nodes[1].mute = true
		},
		"in a pause": func(w *world, c *Client) {
			w.wait(w.do(c, commandsOf(w)...))
			w.pingPong = true
		},
	} {
		for _, how := range []string{"Cancel", "Close", "deadline"} {
			t.Run(name+" "+how, func(t *testing.T) {
				w := newWorld(t, 1, 2, simnet.Config{})
				c := w.client(resp.Options{})
				prepare(w, c)
				o := &outcome{call: new(resp.Call)}
				for _, command := range commandsOf(&world{Cluster: newWorld(t, 1, 2, simnet.Config{}).Cluster}) {
					o.call.Batch.Cmd(strings.Fields(command)...)
				}
				if how == "deadline" {
					o.call.Deadline = w.sim.Now().Add(9 * time.Millisecond)
				}
				w.start(c, o)
				w.sim.After(5*time.Millisecond, func() {
					switch how {
					case "Cancel":
						if o.done == 0 {
							require.NoError(t, c.Cancel(o.call))
						}
						require.ErrorIs(t, c.Cancel(o.call), loop.ErrBusy, "twice")
					case "Close":
						c.Close()
					}
				})
				w.wait(o)
				switch {
				case name == "in a pause" && o.err == nil:
					t.Fatal("no pause")
				case how == "Cancel":
					require.ErrorIs(t, o.err, loop.ErrCancelled)
				case how == "Close":
					require.ErrorIs(t, o.err, resp.ErrClosed)
				default:
					require.ErrorIs(t, o.err, resp.ErrTimeout)
				}
				w.end(c)
			})
		}
	}
}

// The replies of all nodes together have one bound.
func TestRepliesOfAllNodesAreBounded(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{MaxReplyBytes: 8})
	commands, want := w.gets(0, 1, 2)
	require.Greater(t, len(strings.Join(want, "")), 5)
	o := w.do(c, append(commands, commands...)...)
	w.wait(o)
	require.ErrorIs(t, o.err, resp.ErrTooLarge)
	assert.EqualValues(t, 1, c.Stats().TooLarge)
	w.end(c)
}

// Replicas that deny READONLY or INFO are not read, and fail nothing. It is told once for each, they are asked rarely, and are read when they no longer deny.
func TestReplicasThatDeny(t *testing.T) {
	for _, command := range []string{"READONLY", "INFO"} {
		t.Run(command, func(t *testing.T) {
			w := newWorld(t, 1, 2, simnet.Config{})
			replicas := []*server{w.addReplica(0), w.addReplica(1)}
			var told []string
			c := w.client(resp.Options{ReadFrom: resp.ReadReplica, OnDenied: func(addr string, err error) {
				require.ErrorContains(t, err, "'"+strings.ToLower(command)+"'")
				told = append(told, addr)
			}})
			deny := func(command string) {
				for _, s := range replicas {
					s.denies = command
				}
			}
			commands, want := w.gets(0, 1, 0, 1)
			pass := func(seconds int) {
				for range seconds {
					o := w.do(c, commands...)
					w.wait(o)
					require.NoError(t, o.err)
					require.Equal(t, want, o.got)
					w.sim.MoveTo(w.sim.Now().Add(time.Second))
				}
			}
			names := []string{addrOf(2), addrOf(3)}
			deny(command)
			pass(10)
			slices.Sort(told)
			require.Equal(t, names, told)
			pass(110)
			require.Len(t, told, 2, "each of them once")
			assert.Zero(t, c.Stats().ReplicaReads)
			assert.LessOrEqual(t, c.Stats().Connects, uint64(2+2*5), "the masters, and the replicas every 30 s")
			deny("")
			pass(40)
			assert.NotZero(t, c.Stats().ReplicaReads)
			require.Len(t, told, 2)
			if deny(command); command == "INFO" { // READONLY is said to new connections alone.
				pass(5)
				assert.Len(t, told, 4, "another time")
			}
			w.end(c)
		})
	}
}

// After a read at a replica has failed, reads go to the master without a try.
func TestAReplicaThatFailsIsNotReadNext(t *testing.T) {
	w := newWorld(t, 1, 1, simnet.Config{})
	replica := w.addReplica(0)
	c := w.client(resp.Options{ReadFrom: resp.ReadReplica})
	commands, want := w.gets(0)
	read := func() []string {
		o := w.do(c, commands...)
		w.wait(o)
		require.NoError(t, o.err)
		return o.got
	}
	for range 5 {
		require.Equal(t, want, read())
	}
	require.NotZero(t, c.Stats().ReplicaReads)
	w.sim.After(0, func() { w.net.SetDown(addrOf(replica.number), true) })
	assert.Contains(t, read()[0], "redis n1:1: connection lost")
	before := c.Stats()
	for range 3 {
		assert.Equal(t, want, read())
	}
	assert.Equal(t, [2]uint64{before.ReplicaReads, before.Redirected}, [2]uint64{c.Stats().ReplicaReads, c.Stats().Redirected})
	w.end(c)
}

// TestRandomClusters runs a client against clusters that change. Slots move in Redis's own
// steps. Nodes die, fall silent and come back. Maps are old, incomplete or malformed. The
// network is slow, cuts and loses what it carries. Each call ends once, with its own replies in
// its order or with a true error. No write runs twice. When the cluster has been calm for a
// while, nothing fails.
func TestRandomClusters(t *testing.T) {
	for seed := range uint64(150) {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { randomCluster(t, seed, resp.ReadMaster) }) {
			return
		}
	}
}

// The same with replicas, which are read, lose their masters and fall behind. A replica answers
// for a key that has moved away as if the key did not exist.
func TestRandomClustersWithReplicas(t *testing.T) {
	read := map[resp.ReadFrom]uint64{}
	for seed := range uint64(150) {
		from := []resp.ReadFrom{resp.ReadReplica, resp.ReadNearest}[seed%2]
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { read[from] += randomCluster(t, seed, from) }) {
			return
		}
	}
	for from, n := range read {
		require.Greater(t, n, uint64(3_000), "commands for replicas, %s", from)
	}
	t.Log(read)
}

func randomCluster(t *testing.T, seed uint64, from resp.ReadFrom) (replicaReads uint64) {
	draw := rand.New(rand.NewPCG(seed, 9))
	network := simnet.Config{Split: 0.3 * float64(draw.IntN(2))}
	if draw.IntN(2) == 0 {
		network.Latency = func() time.Duration { return time.Duration(draw.IntN(3000)) * time.Microsecond }
	}
	w := newWorld(t, seed, 4, network)
	rng := w.rng
	if from != resp.ReadMaster {
		for range 5 {
			w.addReplica(draw.IntN(4))
		}
	}
	c := w.client(resp.Options{
		Addr: addrOf(0) + "," + addrOf(1), MaxInflight: 1 + rng.IntN(40), Connections: 1 + rng.IntN(2), NoCoalesceReads: rng.IntN(3) == 0,
		RequestTimeout: 60 * time.Millisecond, ConnectTimeout: 50 * time.Millisecond, Seed: seed, ReadFrom: from, ReplicaMaxLagBytes: int64(draw.IntN(2) * 50),
	})
	calm := false
	old := w.Slots(nil)
	w.lie = func() (string, bool) {
		if calm {
			return "", false
		}
		switch rng.IntN(6) {
		case 0:
			return old, true
		case 1:
			return "*1\r\n*3\r\n:0\r\n:99\r\n*2\r\n$1\r\n?\r\n:1\r\n", true
		case 2:
			return ":1\r\n", true
		}
		return "", false
	}
	type use struct {
		*outcome
		want   []string
		writes bool
	}
	var uses []*use
	serial := 0
	begin := func() *use {
		u := &use{outcome: &outcome{call: new(resp.Call)}, writes: rng.IntN(4) == 0}
		for range 1 + rng.IntN(30) {
			if u.writes {
				serial++
				key := fmt.Sprint("w", serial)
				u.call.Batch.Cmd("SET", key)
				u.want = append(u.want, "OK")
			} else {
				key := fmt.Sprint("k", rng.IntN(60))
				u.call.Batch.Cmd("GET", key)
				u.want = append(u.want, key)
			}
		}
		if !calm && rng.IntN(3) == 0 {
			u.call.Deadline = w.sim.Now().Add(time.Duration(1+rng.IntN(80)) * time.Millisecond)
		}
		uses = append(uses, u)
		w.start(c, u.outcome)
		if !calm && rng.IntN(6) == 0 {
			w.sim.After(time.Duration(rng.IntN(10_000))*time.Microsecond, func() { _ = c.Cancel(u.call) })
		}
		return u
	}
	for range 120 {
		switch rng.IntN(8) {
		case 0:
			i := rng.IntN(spans)
			w.Target[i] = rng.IntN(4)
			if w.Target[i] == w.Owner[i] {
				w.Target[i] = -1
			}
		case 1:
			if i := rng.IntN(spans); w.Target[i] >= 0 {
				old = w.Slots(nil)
				w.Owner[i], w.Target[i] = w.Target[i], -1
			}
		case 2:
			n, down := rng.IntN(len(w.nodes)), rng.IntN(3) == 0
			w.sim.After(0, func() { w.net.SetDown(addrOf(n), down) })
		case 3:
			s := w.nodes[rng.IntN(len(w.nodes))]
			s.mute = rng.IntN(4) == 0
			if s.of != nil {
				s.mute, s.cut = s.mute && draw.IntN(2) == 0, draw.IntN(3) == 0
				s.trouble = []string{"", "", "-MASTERDOWN Link with MASTER is down\r\n", "-LOADING Redis is loading\r\n", "-CLUSTERDOWN The cluster is down\r\n"}[draw.IntN(5)]
			}
		default:
			begin()
		}
		w.sim.MoveTo(w.sim.Now().Add(time.Duration(rng.IntN(15)) * time.Millisecond))
		require.NoError(t, w.sim.Settle())
	}
	// It is calm from now on. Slots that have moved halfway stay so.
	calm = true
	for i, s := range w.nodes {
		s.mute, s.cut, s.trouble = false, false, ""
		w.sim.After(0, func() { w.net.SetDown(addrOf(i), false) })
	}
	for i := range w.Target {
		if from != resp.ReadMaster && w.Target[i] >= 0 {
			w.Owner[i], w.Target[i] = w.Target[i], -1
		}
	}
	for range 12 {
		w.sim.MoveTo(w.sim.Now().Add(time.Second))
		w.wait(begin().outcome)
	}
	for range 5 {
		u := begin()
		w.wait(u.outcome)
		require.NoError(t, u.err)
		require.Equal(t, u.want, u.got)
	}
	for _, u := range uses {
		w.wait(u.outcome)
		if u.err != nil {
			var failed *resp.OpError
			require.ErrorAs(t, u.err, &failed)
			require.Empty(t, u.got)
			continue
		}
		require.Len(t, u.got, len(u.want))
		for k, got := range u.got {
			if got != u.want[k] && (from == resp.ReadMaster || u.writes || got != "") {
				require.Regexp(t, `^redis n[0-8]:1: |^MOVED |^ASK |^TRYAGAIN |^MASTERDOWN |^LOADING |^CLUSTERDOWN `, got)
			}
		}
	}
	for _, command := range w.commands {
		if node, _, _ := strings.Cut(command, " "); w.nodes[atoi(node)].of != nil {
			require.NotContains(t, command, " SET ", "a write goes to a master")
		}
	}
	for key, times := range w.writes {
		require.Equal(t, 1, times, key)
	}
	require.Zero(t, len(c.calls))
	w.end(c)
	require.False(t, errors.Is(c.state.Err(), resp.ErrClosed))
	return c.Stats().ReplicaReads
}

// Another server is at the address of a master that has died: it has another id, or none. It gets no command of a call, on
// any connection. Calls fail until a map names another address, or the server's id. Nobody is asked more often than else.
func TestAnotherServerAtTheAddressOfANode(t *testing.T) {
	for name, id := range map[string]string{
		"another node": "$5\r\nother\r\n", "no cluster": "-ERR This instance has cluster support disabled\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var turns []resp.ClusterTurn
			w := newWorld(t, 1, 3, simnet.Config{})
			c := w.client(resp.Options{OnTurn: func(turn resp.ClusterTurn) { turns = append(turns, turn) }})
			commands, want := w.gets(0, 1, 2)
			w.wait(w.do(c, commands...))
			w.nodes[1].id = id
			w.replace(1)
			sent := w.since(func() {
				for range 20 {
					o := w.do(c, commands...)
					w.wait(o)
					require.NoError(t, o.err)
					require.Equal(t, []string{want[0], want[2]}, []string{o.got[0], o.got[2]})
					require.Contains(t, o.got[1], "redis n1:1: cannot connect: another server is at the address of a node")
					w.pass(20 * time.Millisecond)
				}
			})
			for _, command := range sent {
				require.False(t, strings.HasPrefix(command, "1 "), command)
			}
			require.Len(t, turns, 1)
			assert.Equal(t, addrOf(1), turns[0].Asked)
			strangers := c.Stats().Strangers
			assert.NotZero(t, strangers)
			for i := range w.Owner { // A failover.
				if w.Owner[i] == 1 {
					w.Owner[i] = 2
				}
			}
			w.pass(time.Second)
			w.wait(w.do(c, "PING"))
			w.pass(time.Second)
			o := w.do(c, commands...)
			w.wait(o)
			assert.Equal(t, want, o.got)
			assert.Equal(t, strangers, c.Stats().Strangers)
			w.end(c)
		})
	}
}

// All nodes of a cluster are replaced at their addresses. The client follows, since the node that the user has named says so
// once it is asked without regard to its id.
func TestAllNodesAreReplacedAtTheirAddresses(t *testing.T) {
	w := newWorld(t, 1, 3, simnet.Config{})
	c := w.client(resp.Options{})
	commands, want := w.gets(0, 1, 2)
	w.wait(w.do(c, commands...))
	w.ID = func(node int) string { return fmt.Sprint("new", node) }
	for i := range w.nodes {
		w.replace(i)
	}
	tries := 0
	for ; tries < 20; tries++ {
		w.pass(100 * time.Millisecond)
		o := w.do(c, commands...)
		w.wait(o)
		if slices.Equal(want, o.got) {
			break
		}
		for _, text := range o.got {
			require.Contains(t, text, "redis n")
		}
	}
	assert.Less(t, tries, 5)
	require.Nil(t, c.guest)
	w.end(c)
	assert.Zero(t, c.stats.Inflight+c.stats.Waiting+c.stats.Ready)
}

// A node that was connected to before any map named its id turns out to be another one: it keeps no connection.
func TestANodeIsKnownByALaterMap(t *testing.T) {
	w := newWorld(t, 1, 2, simnet.Config{})
	w.nodes[0].id = "$5\r\nother\r\n" // It says that it has no slots, and is asked first.
	c := w.client(resp.Options{Addr: addrOf(0) + "," + addrOf(1)})
	asked := 0
	w.lie = func() (string, bool) { asked++; return "*0\r\n", w.commands[len(w.commands)-1] == "0 CLUSTER SLOTS" }
	commands, _ := w.gets(0, 1)
	for range 10 {
		o := w.do(c, commands...)
		w.wait(o)
		require.Contains(t, o.got[0], "redis n0:1: ")
		w.pass(time.Second)
	}
	for _, command := range w.commands {
		require.False(t, strings.HasPrefix(command, "0 GET"), command)
	}
	w.end(c)
}

// A node that does not tell its id is used, and this is told once. One that is loading is not connected to until it tells it.
func TestNodesThatDoNotTellTheirID(t *testing.T) {
	for reply, used := range map[string]bool{
		"-NOPERM no\r\n": true, "-ERR unknown command 'CLUSTER'\r\n": true, "*0\r\n": true, "$0\r\n\r\n": true, "-LOADING Redis is loading\r\n": false,
	} {
		var told []error
		w := newWorld(t, 1, 2, simnet.Config{})
		c := w.client(resp.Options{Connections: 3, OnDenied: func(addr string, err error) {
			told = append(told, fmt.Errorf("%s: %w", addr, err))
		}})
		w.nodes[1].id = reply
		commands, want := w.gets(0, 1)
		for range 5 {
			o := w.do(c, commands...)
			w.wait(o)
			if used {
				assert.Equal(t, want, o.got, reply)
			} else {
				assert.Contains(t, o.got[1], "redis n1:1: cannot connect: LOADING")
			}
			w.replace(1)
		}
		if used {
			require.Len(t, told, 1, reply)
			require.ErrorIs(t, told[0], resp.ErrUnidentified)
			require.ErrorContains(t, told[0], addrOf(1))
		} else {
			require.Empty(t, told)
		}
		w.nodes[1].id = ""
		w.pass(time.Second)
		o := w.do(c, commands...)
		w.wait(o)
		assert.Equal(t, want, o.got, reply)
		assert.Zero(t, c.Stats().Strangers)
		w.end(c)
	}
}

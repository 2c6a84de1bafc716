package clusterclient

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/clustertest"
	"github.com/rankd/rankd/internal/testing/loopsim"
	"github.com/rankd/rankd/internal/testing/looptest"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

func TestMain(m *testing.M) { looptest.Main(m) }

// spans is the number of spans of slots that have one owner each.
const spans = clustertest.Spans

// A world is a simulated Redis Cluster in virtual time. GET x answers x, and SET x answers OK.
// A node redirects as Redis does.
type world struct {
	clustertest.Cluster
	t        *testing.T
	sim      *loopsim.Sim
	net      *simnet.Net
	rng      *rand.Rand
	nodes    []*server
	writes   map[string]int
	commands []string              // "node command", in the order in which nodes received them
	instead  map[string]string     // by key: one answer that replaces the usual one
	pingPong bool                  // two nodes each say that the other one has the slots
	lie      func() (string, bool) // what CLUSTER SLOTS answers instead
	tracked  *trackedWorld         // if set, GET answers versions, and sessions track
}

// A server is a node: a master or, with a master, a replica.
type server struct {
	world   *world
	number  int
	mute    bool
	conns   int // open
	of      *server
	cut     bool   // a replica's link to its master is down
	offset  int    // of a master: bytes of writes; of a replica: the bytes that it has
	trouble string // a replica's reply to all reads; "": the replica answers
	denies  string // the command that its user may not run
	id      string // its answer to CLUSTER MYID; "": that of the node
}

func addrOf(node int) string { return "n" + strconv.Itoa(node) + ":1" }

func newWorld(t *testing.T, seed uint64, nodes int, network simnet.Config) *world {
	rng := rand.New(rand.NewPCG(seed, 5))
	w := &world{t: t, rng: rng, writes: map[string]int{}, instead: map[string]string{}}
	w.sim = loopsim.New(rng, func(recovered any, stack []byte) { t.Fatalf("panic: %v\n%s", recovered, stack) })
	w.net = simnet.New(w.sim, rng, network)
	w.Cluster = clustertest.New(nodes, addrOf)
	w.Replicas = w.replicasOf
	for i := range nodes {
		s := &server{world: w, number: i}
		w.nodes = append(w.nodes, s)
		w.net.Listen(addrOf(i), s.accept)
	}
	return w
}

// addReplica adds a replica of a master.
func (w *world) addReplica(master int) *server {
	s := &server{world: w, number: len(w.nodes), of: w.nodes[master]}
	w.nodes = append(w.nodes, s)
	w.net.Listen(addrOf(s.number), s.accept)
	return s
}

// answerReplica returns a replica's answer to a command about a key. After READONLY, it answers
// reads of its master's slots. It does not know keys that have moved away.
func (s *server) answerReplica(args []string, slot int, readonly bool) string {
	w, span := s.world, clustertest.SpanOf(slot)
	switch {
	case s.trouble != "":
		return s.trouble
	case w.Owner[span] != s.of.number || !readonly || args[0] != "GET":
		return w.Moved(slot)
	case w.Target[span] >= 0 && slot%2 == 0:
		return "$-1\r\n"
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(args[1]), args[1])
}

// replication returns the answer to INFO replication.
func (s *server) replication() string {
	text := fmt.Sprintf("role:master\r\nmaster_repl_offset:%d\r\n", s.offset)
	if s.of != nil {
		link := "up"
		if s.cut {
			link = "down"
		} else if !s.of.mute {
			s.offset = s.of.offset
		}
		text = fmt.Sprintf("role:slave\r\nmaster_link_status:%s\r\nslave_repl_offset:%d\r\n", link, s.offset)
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
}

func (s *server) accept(p *simnet.Peer) {
	asking, readonly := false, false
	s.conns++
	p.OnClose = func() { s.conns-- }
	own := s.world.tracked.session(s, p)
	p.OnData = func(data []byte) (consumed int) {
		for {
			complete, args, _, rest, err := redcon.ReadNextCommand(data[consumed:], nil)
			require.NoError(s.world.t, err)
			if !complete || s.mute {
				return consumed
			}
			consumed = len(data) - len(rest)
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			s.world.commands = append(s.world.commands, fmt.Sprint(s.number, " ", strings.Join(words, " ")))
			if text, ok := own.answer(words); ok {
				p.Write([]byte(text))
				continue
			}
			readonly = readonly || words[0] == "READONLY"
			text := s.answer(words, &asking, readonly)
			p.Write([]byte(own.replied(words, text)))
		}
	}
}

func (s *server) answer(args []string, asking *bool, readonly bool) string {
	w := s.world
	asked := *asking
	*asking = false
	if args[0] == s.denies {
		return "-NOPERM this user has no permissions to run the '" + strings.ToLower(args[0]) + "' command\r\n"
	}
	switch args[0] {
	case "ASKING":
		*asking = true
		return "+OK\r\n"
	case "READONLY":
		return "+OK\r\n"
	case "INFO":
		return s.replication()
	case "CLUSTER":
		switch {
		case args[1] == "MYID" && s.id != "":
			return s.id
		case args[1] == "MYID":
			return w.MyID(s.number)
		}
		if w.lie != nil {
			if text, ok := w.lie(); ok {
				return text
			}
		}
		return w.Slots(nil)
	case "PING":
		return "+PONG\r\n"
	}
	key := args[1]
	if text, ok := w.instead[key]; ok {
		delete(w.instead, key)
		return text
	}
	slot := cluster.Slot([]byte(key))
	if s.of != nil {
		return s.answerReplica(args, slot, readonly)
	}
	if w.pingPong {
		return fmt.Sprintf("-MOVED %d %s\r\n", slot, addrOf(1-s.number))
	}
	if text, ok := w.Redirect(s.number, slot, asked); ok {
		return text
	}
	if args[0] == "SET" {
		s.offset += 10
		w.writes[key]++
		return "+OK\r\n"
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(key), key)
}

// replicasOf returns the numbers of the replicas of a master.
func (w *world) replicasOf(master int) (replicas []int) {
	for _, s := range w.nodes {
		if s.of == w.nodes[master] {
			replicas = append(replicas, s.number)
		}
	}
	return replicas
}

// keyOf returns the nth key of a node.
func (w *world) keyOf(node, nth int) string {
	for i := 0; ; i++ {
		key := "k" + strconv.Itoa(i)
		if w.Owner[clustertest.SpanOf(cluster.Slot([]byte(key)))] == node {
			if nth--; nth < 0 {
				return key
			}
		}
	}
}

// An outcome is what became of a call.
type outcome struct {
	call *resp.Call
	done int
	err  error
	got  []string // the replies; of a reply that is an error, the error
}

// do starts a call on the loop.
func (w *world) do(c *Client, commands ...string) *outcome {
	o := &outcome{call: new(resp.Call)}
	for _, command := range commands {
		o.call.Batch.Cmd(strings.Fields(command)...)
	}
	w.start(c, o)
	return o
}

func (w *world) start(c *Client, o *outcome) {
	inside := true
	o.call.Done = func(call *resp.Call) {
		require.False(w.t, inside, "Done inside Do")
		o.done++
		o.err = call.Err
		for _, r := range call.Replies.All() {
			if err := r.Err(); err != nil {
				o.got = append(o.got, err.Error())
			} else {
				o.got = append(o.got, string(r.Bytes()))
			}
		}
	}
	w.sim.After(0, func() {
		if err := c.Do(o.call); err != nil {
			o.err, o.done = err, o.done+1
		}
		inside = false
	})
}

// pass lets a time pass. What is due at its end has happened.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.sim.MoveTo(w.sim.Now().Add(d))
	require.NoError(w.t, w.sim.Settle())
}

// replace has another server take over the address of a node, which ends its connections.
func (w *world) replace(node int) {
	w.sim.After(0, func() { w.net.SetDown(addrOf(node), true); w.net.SetDown(addrOf(node), false) })
	w.pass(time.Second)
}

// run lets everything happen that happens before an instant.
func (w *world) run(until func() bool) {
	w.t.Helper()
	for range 1_000_000 {
		require.NoError(w.t, w.sim.Settle())
		if until != nil && until() {
			return
		}
		at, ok := w.sim.Next()
		if !ok {
			require.Nil(w.t, until, "nothing is left to happen")
			return
		}
		w.sim.MoveTo(at)
	}
	w.t.Fatal("it does not end")
}

// wait runs until calls are done.
func (w *world) wait(outcomes ...*outcome) {
	w.t.Helper()
	w.run(func() bool {
		for _, o := range outcomes {
			if o.done == 0 {
				return false
			}
		}
		return true
	})
	for _, o := range outcomes {
		require.Equal(w.t, 1, o.done)
	}
}

// end closes a client and checks that nothing is left of it.
func (w *world) end(c *Client) {
	w.t.Helper()
	w.sim.After(0, c.Close)
	w.run(nil)
	require.Zero(w.t, w.net.Open())
	require.Empty(w.t, c.calls)
	require.Zero(w.t, c.underWay.Len()+c.settled.Len()+c.mapless+c.retrying)
	s := c.Stats()
	require.Zero(w.t, s.Inflight+s.Waiting)
	require.NoError(w.t, w.sim.Stop())
}

func (w *world) client(o resp.Options) *Client {
	if o.Addr == "" {
		o.Addr = addrOf(0)
	}
	return New(w.sim.Loop, w.net, o)
}

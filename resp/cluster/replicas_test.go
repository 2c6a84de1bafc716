package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// info decodes a bulk string that holds a text.
func info(t testing.TB, text string) resp.Reply {
	t.Helper()
	d := resp.NewDecoder(resp.Limits{})
	d.Reset(1)
	_, done, err := d.Decode(fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text))
	require.NoError(t, err)
	require.True(t, done)
	return d.Replies().At(0)
}

func TestParseReplication(t *testing.T) {
	for text, want := range map[string]Replication{
		"# Replication\r\nrole:master\r\nconnected_slaves:1\r\nslave0:ip=h,port=1,state=online,offset=7,lag=0\r\nmaster_repl_offset:98\r\n":      {true, false, 98},
		"role:slave\r\nmaster_host:h\r\nmaster_link_status:up\r\nslave_read_repl_offset:15\r\nslave_repl_offset:14\r\nmaster_repl_offset:14\r\n": {false, true, 14},
		"role:slave\r\nmaster_link_status:down\r\nmaster_sync_in_progress:1\r\nslave_repl_offset:0\r\nmaster_link_down_since_seconds:4\r\n":      {false, false, 0},
		"role:slave\nmaster_link_status:up": {false, true, -1},
		"role:master":                       {true, false, -1},
		"role:master\r\nslave_repl_offset:x\r\nmaster_link_status:up": {true, false, -1},
	} {
		r, err := ParseReplication(info(t, text))
		require.NoError(t, err, text)
		assert.Equal(t, want, r, text)
	}
	for text, want := range map[string]string{
		"": "names no role", "role:sentinel": "names no role", "xrole:master": "names no role",
		"role:master\r\nmaster_repl_offset:-1":                 "master_repl_offset is malformed",
		"role:slave\r\nslave_repl_offset:1e3":                  "slave_repl_offset is malformed",
		"role:slave\r\nslave_repl_offset:\r\n":                 "slave_repl_offset is malformed",
		"role:slave\r\nslave_repl_offset:99999999999999999999": "slave_repl_offset is malformed",
	} {
		_, err := ParseReplication(info(t, text))
		assert.ErrorContains(t, err, want, text)
	}
	d := resp.NewDecoder(resp.Limits{})
	d.Reset(1)
	_, _, err := d.Decode([]byte("-NOPERM this user has no permissions to run the 'info' command\r\n"))
	require.NoError(t, err)
	_, err = ParseReplication(d.Replies().At(0))
	assert.ErrorContains(t, err, "NOPERM")
}

func FuzzParseReplication(f *testing.F) {
	f.Add("role:slave\r\nmaster_link_status:up\r\nslave_repl_offset:14\r\n")
	f.Add("role:master\nmaster_repl_offset:1")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReplication(info(t, text))
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.False(t, r.Master && r.LinkUp)
		require.GreaterOrEqual(t, r.Offset, int64(-1))
		require.Contains(t, text, "role:")
	})
}

var withReplicas = rows("0 8191 a:1 r1:1 r2:1", "8192 16383 b:2 r3:1")

// replicated is a world that knows its map and reads from replicas.
func replicated(t *testing.T, from resp.ReadFrom, maxLag int64) *world {
	w := newWorld(t, map[string]string{"a:1": withReplicas, "b:2": withReplicas}, "a:1", "b:2")
	w.ReadFrom(from, maxLag)
	require.NotEmpty(t, w.refresh())
	return w
}

// reads returns the address to which reads of a slot go.
func (w *world) reads(slot int) string { return w.Addr(w.Reader(slot, w.now)) }

// asked returns the addresses of the nodes that are to be asked now.
func (w *world) asked() (addrs []string) {
	for _, n := range w.Probe(w.now) {
		addrs = append(addrs, w.Addr(n))
	}
	return addrs
}

// says has a node answer a question that was asked some time ago.
func (w *world) says(addr string, r Replication, ago time.Duration) {
	w.Probed(w.numbers[server{addr, !strings.HasPrefix(addr, "a") && !strings.HasPrefix(addr, "b")}], r, w.now.Add(-ago), w.now)
}

// The table says which nodes are asked, and how often.
func TestWhoIsProbed(t *testing.T) {
	for _, c := range []struct {
		from   resp.ReadFrom
		maxLag int64
		want   []string
	}{
		{resp.ReadMaster, 0, nil},
		{resp.ReadReplica, 0, []string{"r1:1", "r2:1", "r3:1"}},
		{resp.ReadReplica, 5, []string{"r1:1", "r2:1", "a:1", "r3:1", "b:2"}},
		{resp.ReadNearest, 0, []string{"r1:1", "r2:1", "a:1", "r3:1", "b:2"}},
	} {
		w := replicated(t, c.from, c.maxLag)
		assert.Equal(t, c.want, w.asked())
		w.now = w.now.Add(999 * time.Millisecond)
		assert.Empty(t, w.asked(), "too early")
		w.now = w.now.Add(time.Millisecond)
		assert.Equal(t, c.want, w.asked())
	}
	w := newWorld(t, nil, "a:1")
	w.ReadFrom(resp.ReadReplica, 0)
	assert.Empty(t, w.asked(), "there is no map")
}

// A node that denies to answer is told of once for each reason, and asked again half a minute later. Other failures change nothing.
func TestWhoDeniesToAnswer(t *testing.T) {
	w := replicated(t, resp.ReadReplica, 0)
	r1 := w.number(server{"r1:1", true})
	denied := func(message string) bool {
		return w.Unprobed(r1, &resp.OpError{Addr: "r1:1", Kind: resp.ErrConnect, Cause: &resp.ServerError{Message: message}}, w.now)
	}
	all := []string{"r1:1", "r2:1", "r3:1"}
	for _, message := range []string{"LOADING Redis is loading", "ERR max number of clients reached"} {
		require.Equal(t, all, w.asked())
		assert.False(t, denied(message))
		w.now = w.now.Add(time.Second)
	}
	require.Equal(t, all, w.asked())
	assert.True(t, denied("NOPERM readonly"))
	for range 29 {
		w.now = w.now.Add(time.Second)
		require.Equal(t, all[1:], w.asked())
	}
	w.now = w.now.Add(time.Second)
	require.Equal(t, all, w.asked())
	assert.False(t, denied("NOPERM readonly"), "it is known")
	assert.True(t, denied("NOPERM info"))
	w.says("r1:1", Replication{LinkUp: true}, 0)
	assert.Equal(t, "r1:1", w.reads(0))
	assert.True(t, denied("NOPERM info"), "once more")
	assert.Equal(t, "a:1", w.reads(0))
}

// What is known of a replica decides whether it is read.
func TestWhoIsRead(t *testing.T) {
	up := Replication{LinkUp: true, Offset: 100}
	master := Replication{Master: true, Offset: 100}
	for name, c := range map[string]struct {
		maxLag int64
		happen func(w *world)
		want   string // for slot 0
	}{
		"nobody has answered":        {0, func(*world) {}, "a:1"},
		"the first is well":          {0, func(w *world) { w.says("r1:1", up, 0) }, "r1:1"},
		"the second is well":         {0, func(w *world) { w.says("r2:1", up, 0) }, "r2:1"},
		"a link is down":             {0, func(w *world) { w.says("r1:1", Replication{Offset: 100}, 0) }, "a:1"},
		"it has answered of late":    {0, func(w *world) { w.says("r1:1", up, 3*time.Second) }, "r1:1"},
		"its answer is old":          {0, func(w *world) { w.says("r1:1", up, 3*time.Second+1) }, "a:1"},
		"it has failed":              {0, func(w *world) { w.says("r1:1", up, 0); w.Distrust(w.number(server{"r1:1", true})) }, "a:1"},
		"it answers again":           {0, func(w *world) { w.Distrust(w.number(server{"r1:1", true})); w.says("r1:1", up, 0) }, "r1:1"},
		"it lacks nothing":           {5, func(w *world) { w.says("r1:1", up, 0); w.says("a:1", master, 0) }, "r1:1"},
		"it lacks as much as it may": {5, func(w *world) { w.says("r1:1", up, 0); w.says("a:1", Replication{true, false, 105}, 0) }, "r1:1"},
		"it lacks too much":          {5, func(w *world) { w.says("r1:1", up, 0); w.says("a:1", Replication{true, false, 106}, 0) }, "a:1"},
		"the other lacks less": {5, func(w *world) {
			w.says("r1:1", up, 0)
			w.says("r2:1", Replication{false, true, 103}, 0)
			w.says("a:1", Replication{true, false, 106}, 0)
		}, "r2:1"},
		"the master says nothing":      {5, func(w *world) { w.says("r1:1", up, 0) }, "a:1"},
		"the master says no number":    {5, func(w *world) { w.says("r1:1", up, 0); w.says("a:1", Replication{true, false, -1}, 0) }, "a:1"},
		"the replica says no number":   {5, func(w *world) { w.says("r1:1", Replication{false, true, -1}, 0); w.says("a:1", master, 0) }, "a:1"},
		"the master's answer is old":   {5, func(w *world) { w.says("r1:1", up, 0); w.says("a:1", master, 4*time.Second) }, "a:1"},
		"it has become a master":       {0, func(w *world) { w.says("r1:1", up, 0); w.says("r1:1", master, 0) }, "a:1"},
		"the slot moves":               {0, func(w *world) { w.says("r1:1", up, 0); w.says("r3:1", up, 0); w.judge("a:1", "MOVED 0 b:2", 0) }, "r3:1"},
		"the slot moves to a stranger": {0, func(w *world) { w.says("r1:1", up, 0); w.judge("a:1", "MOVED 0 x:2", 0) }, "x:2"},
		"a map without it": {0, func(w *world) {
			w.says("r1:1", up, 0)
			w.maps["a:1"], w.maps["b:2"] = whole, whole
			w.Suspect(w.now)
			w.now += second
			w.refresh()
		}, "a:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := replicated(t, resp.ReadReplica, c.maxLag)
			c.happen(w)
			assert.Equal(t, c.want, w.reads(0))
			for slot := range Slots {
				if w.Owner(slot) == w.Owner(0) && w.reads(slot) == "a:1" {
					assert.Equal(t, "a:1", w.reads(0), "all of one master's or none")
				}
			}
		})
	}
	w := replicated(t, resp.ReadReplica, 0)
	w.says("r1:1", up, 0)
	for _, text := range []string{whole, rows("0 8191 a:1 r9:1", "8192 16383 b:2")} {
		w.maps["a:1"], w.maps["b:2"] = text, text
		w.Suspect(w.now)
		w.now += second
		w.refresh()
		w.Forget(w.numbers[server{"r1:1", true}])
	}
	assert.Equal(t, "a:1", w.reads(0), "another replica has the number of one that was well")
	w = replicated(t, resp.ReadReplica, 0)
	w.says("r1:1", up, 0)
	w.says("r2:1", up, 0)
	assert.NotEqual(t, w.reads(0), w.reads(1), "replicas share the work")
	w.says("r1:1", master, 0)
	assert.True(t, w.Suspects())
}

// The nearest node is the one with the shortest round trip among those that may be read, which
// include the master.
func TestTheNearestIsRead(t *testing.T) {
	w := replicated(t, resp.ReadNearest, 0)
	up := Replication{LinkUp: true}
	ms := time.Millisecond
	assert.Equal(t, "a:1", w.reads(0), "nobody has answered")
	w.says("r1:1", up, 3*ms)
	assert.Equal(t, "r1:1", w.reads(0), "the master was not measured")
	w.says("a:1", Replication{Master: true}, 2*ms)
	assert.Equal(t, "a:1", w.reads(0))
	w.says("r2:1", up, ms)
	assert.Equal(t, "r2:1", w.reads(0))
	w.says("r2:1", Replication{}, ms)
	assert.Equal(t, "a:1", w.reads(0), "its link is down")
	w.says("r2:1", up, 4*ms)
	assert.Equal(t, "r2:1", w.reads(0), "one slow answer counts for a quarter")
	w.says("r2:1", up, 4*ms)
	assert.Equal(t, "a:1", w.reads(0))
}

// A replica's errors, and its silence, decide where a read goes next.
func TestJudgeOfReplicas(t *testing.T) {
	for _, c := range []struct {
		message string
		hops    int
		addr    string // where it is sent; "": nowhere
		pause   time.Duration
		trusted bool // the replica is read afterwards
	}{
		{"MOVED 0 a:1", 0, "a:1", 0, false},
		{"MOVED 0 x:9", 0, "x:9", 0, false},
		{"MOVED 0 r1:1", 0, "r1:1", 0, false}, // It has become the master.
		{"MOVED 0", 0, "", 0, false},
		{"MASTERDOWN Link with MASTER is down", 0, "a:1", 0, false},
		{"LOADING Redis is loading", 0, "a:1", 0, false},
		{"CLUSTERDOWN The cluster is down", 0, "a:1", 0, false},
		{"CLUSTERDOWN The cluster is down", 12, "", 0, false},
		{"TRYAGAIN", 0, "a:1", 2 * time.Millisecond, true},
		{"WRONGTYPE no", 0, "", 0, true},
	} {
		w := replicated(t, resp.ReadReplica, 0)
		w.says("r1:1", Replication{LinkUp: true}, 0)
		require.Equal(t, "r1:1", w.reads(0))
		v := w.Judge([]byte(c.message), w.Reader(0, w.now), 0, c.hops, true, w.now)
		assert.Equal(t, c.addr != "", v.Again, c.message)
		if v.Again {
			assert.Equal(t, c.addr, w.Addr(v.Node), c.message)
			assert.False(t, w.IsReplica(v.Node), c.message)
			assert.Equal(t, c.pause, v.Pause, c.message)
		}
		assert.Equal(t, c.trusted, w.IsReplica(w.Reader(0, w.now)), c.message)
	}
	w := replicated(t, resp.ReadReplica, 0)
	w.says("r1:1", Replication{LinkUp: true}, 0)
	r := w.Reader(0, w.now)
	assert.Equal(t, Verdict{Again: true, Node: w.Owner(0)}, w.Missed(r, 0, false, 0))
	assert.Equal(t, Verdict{}, w.Missed(r, 0, true, 0), "it may have answered")
	assert.Equal(t, Verdict{}, w.Missed(w.Owner(0), 0, false, 0), "a master")
	assert.Equal(t, Verdict{}, w.Missed(r, None, false, 0), "of no slot")
}

// A node has one number per role. A replica's number is kept while a map has the replica.
func TestReplicasHaveNumbersOfTheirOwn(t *testing.T) {
	w := replicated(t, resp.ReadReplica, 0)
	w.says("r1:1", Replication{LinkUp: true}, 0)
	r := w.Reader(0, w.now)
	assert.True(t, w.IsReplica(r))
	assert.False(t, w.Forget(r))
	m := w.Node("r1:1")
	assert.NotEqual(t, r, m)
	assert.False(t, w.IsReplica(m))
	w.maps["a:1"] = rows("0 8191 r1:1 a:1", "8192 16383 b:2")
	w.maps["b:2"] = w.maps["a:1"]
	w.Suspect(w.now)
	w.now += second
	w.refresh()
	assert.Equal(t, "r1:1", w.reads(0))
	assert.Equal(t, m, w.Reader(0, w.now))
	assert.True(t, w.Forget(r))
	assert.False(t, w.IsReplica(w.Anyone()))
}

// TestReplicaModel has replicas fall behind, lose their masters, die and change their masters.
// It compares the node that is read with the one that an observer of all answers would choose.
func TestReplicaModel(t *testing.T) {
	replica := 0
	for seed := range uint64(200) {
		replica += replicaModel(t, rand.New(rand.NewPCG(seed, 4)))
	}
	require.Greater(t, replica, 1000)
}

func replicaModel(t *testing.T, rng *rand.Rand) (fromReplicas int) {
	const masters, replicas = 3, 6
	from := []resp.ReadFrom{resp.ReadMaster, resp.ReadReplica, resp.ReadNearest}[rng.IntN(3)]
	maxLag := int64(rng.IntN(2) * 50)
	type answer struct {
		Replication
		asked clock.Time
		took  time.Duration // smoothed, by the rules
	}
	var of [replicas]int
	var offset [masters + replicas]int64
	var down [replicas]bool
	known := map[string]*answer{}
	addr := func(n int) string {
		if n < masters {
			return fmt.Sprintf("m%d:1", n)
		}
		return fmt.Sprintf("r%d:1", n-masters)
	}
	describe := func() string {
		ranges := make([]string, masters)
		for m := range ranges {
			ranges[m] = fmt.Sprintf("%d %d %s", m*Slots/masters, (m+1)*Slots/masters-1, addr(m))
		}
		for r, m := range of {
			ranges[m] += " " + addr(masters+r)
		}
		return rows(ranges...)
	}
	s, now := NewState([]string{addr(0)}, rng.Uint64()), start
	s.ReadFrom(from, maxLag)
	for r := range of {
		of[r] = rng.IntN(masters)
	}
	mapped := of                   // as the last map has them
	denied := map[int]clock.Time{} // by number: when it last denied a question
	refresh := func() {
		if _, ok := s.Ask(now); ok {
			m, err := parse(t, describe())
			require.NoError(t, err)
			_, again := s.Answered(m, nil, now)
			require.False(t, again)
			mapped = of
		}
	}
	refresh()
	for range 200 {
		switch rng.IntN(8) {
		case 0:
			of[rng.IntN(replicas)] = rng.IntN(masters)
		case 1:
			down[rng.IntN(replicas)] = rng.IntN(3) == 0
		case 2:
			n := masters + rng.IntN(replicas)
			if number, ok := s.numbers[server{addr(n), true}]; ok {
				s.Distrust(number)
				if a := known[addr(n)]; a != nil {
					a.asked = 0
				}
			}
		case 3:
			if rng.IntN(4) == 0 {
				s.Suspect(now)
			}
		}
		for m := range masters {
			offset[m] += int64(rng.IntN(40))
		}
		for r := range of {
			if n := masters + r; !down[r] && rng.IntN(3) > 0 {
				offset[n] = offset[of[r]]
			}
		}
		now += clock.Time(rng.IntN(int(second)))
		refresh()
		asked := now
		nodes := s.Probe(now)
		if from == resp.ReadMaster {
			require.Empty(t, nodes)
		}
		rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		for _, number := range nodes {
			require.LessOrEqual(t, denied[number], now-clock.Time(30*time.Second), "it has denied the question")
			switch rng.IntN(40) {
			case 0, 1, 2, 3, 4, 5:
				continue // It does not answer.
			case 6:
				s.Unprobed(number, errors.New("a connection that is lost"), now)
				if a := known[s.Addr(number)]; a != nil {
					a.asked = 0
				}
				continue
			case 7:
				s.Unprobed(number, &resp.ServerError{Message: "NOPERM"}, now)
				denied[number] = now
				if a := known[s.Addr(number)]; a != nil {
					a.asked = 0
				}
				continue
			}
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Microsecond)
			n := None
			for i := range masters + replicas {
				if addr(i) == s.Addr(number) {
					n = i
				}
			}
			r := Replication{Master: n < masters, Offset: offset[n]}
			if !r.Master {
				r.LinkUp = !down[n-masters]
			}
			s.Probed(number, r, asked, now)
			took := max(now.Sub(asked), 1)
			if last := known[addr(n)]; last != nil {
				took = last.took + (took-last.took)/4
			}
			known[addr(n)] = &answer{r, asked, took}
		}
		for m := range masters {
			slot := m * Slots / masters
			got := s.Addr(s.Reader(slot, now))
			fresh := func(a *answer) bool { return a != nil && a.asked != 0 && now.Sub(a.asked) <= 3*time.Second }
			var good []int
			for r := range mapped {
				a, of := known[addr(masters+r)], known[addr(m)]
				if mapped[r] == m && fresh(a) && a.LinkUp && (maxLag == 0 || fresh(of) && of.Offset-a.Offset <= maxLag) {
					good = append(good, masters+r)
				}
			}
			switch {
			case from == resp.ReadMaster || len(good) == 0:
				require.Equal(t, addr(m), got)
				continue
			case from == resp.ReadNearest && fresh(known[addr(m)]):
				good = append(good, m)
			}
			require.True(t, slices.ContainsFunc(good, func(n int) bool { return addr(n) == got }), "%s is read", got)
			if from == resp.ReadNearest {
				for _, n := range good {
					require.LessOrEqual(t, known[got].took, known[addr(n)].took)
				}
			}
			if got != addr(m) {
				fromReplicas++
			}
		}
	}
	return fromReplicas
}

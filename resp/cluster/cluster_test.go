package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// Slots as CLUSTER KEYSLOT of redis-server 7.0.15 returns them, and the examples of the
// specification.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "123456789": 0x31C3, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443, "user1000": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "{bar": 4015, "foo{bar}{zap}": 5061, "bar": 5061,
	} {
		assert.Equal(t, want, Slot([]byte(key)), key)
	}
	assert.NotEqual(t, Slot([]byte("a{")), Slot([]byte("a")))
}

func command(args ...string) []byte {
	var b resp.Batch
	b.Cmd(args...)
	return b.Encoded()
}

func TestRoute(t *testing.T) {
	foo := Slot([]byte("foo"))
	for text, want := range map[string]int{
		"GET foo": foo, "HMGET foo a b": foo, "LRANGE foo 0 -1": foo, "MY.COMMAND foo": foo,
		"PING": None, "INFO server": None, "GET": None, "CLUSTER SLOTS": None,
		"EVAL return 1 foo": foo, "EVAL return 0": None, "OBJECT ENCODING foo": foo,
		"XREAD COUNT 2 STREAMS foo 0": foo, "XREAD COUNT 2": None, "ZUNION 1 foo": foo,
	} {
		assert.Equal(t, want, Route(command(strings.Fields(text)...)), text)
	}
	assert.Equal(t, None, Route(nil))
	assert.Equal(t, None, Route([]byte("*2\r\n$3\r\nGET\r\n$100\r\nfoo\r\n")), "cut off")
}

// parse reads a reply to CLUSTER SLOTS from the node at 10.0.0.9:7000.
func parse(t testing.TB, text string) (*Map, error) {
	t.Helper()
	d := resp.NewDecoder(resp.Limits{})
	d.Reset(1)
	_, done, err := d.Decode([]byte(text))
	require.NoError(t, err)
	require.True(t, done)
	return ParseSlots(d.Replies().At(0), "10.0.0.9:7000")
}

// rows encodes a reply from ranges such as "0 8191 a:1 b:2", with the master first. The host -
// is null. The id of a server is its address, unless # and another one follow.
func rows(ranges ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(ranges))
	for _, row := range ranges {
		fields := strings.Fields(row)
		fmt.Fprintf(&out, "*%d\r\n:%s\r\n:%s\r\n", len(fields), fields[0], fields[1])
		for _, server := range fields[2:] {
			server, id, own := strings.Cut(server, "#")
			if !own {
				id = server
			}
			at := strings.LastIndexByte(server, ':')
			host := fmt.Sprintf("$%d\r\n%s\r\n", at, server[:at])
			if server[:at] == "-" {
				host = "$-1\r\n"
			}
			fmt.Fprintf(&out, "*3\r\n%s:%s\r\n$%d\r\n%s\r\n", host, server[at+1:], len(id), id)
		}
	}
	return out.String()
}

func TestParseSlots(t *testing.T) {
	m, err := parse(t, rows("0 5460 h1:1 h2:2", "5461 5461 ?:3", "5462 5462 -:4", "5463 5463 :5", "5464 5464 ::1:6", "5465 6000 h1:1"))
	require.NoError(t, err)
	for slot, want := range map[int]string{
		0: "h1:1", 5460: "h1:1", 5461: "10.0.0.9:3", 5462: "10.0.0.9:4", 5463: "10.0.0.9:5", 5464: "[::1]:6", 6000: "h1:1", 6001: "", Slots - 1: "",
	} {
		assert.Equal(t, want, m.Master(slot), slot)
	}
	assert.Equal(t, Slots-6001, m.Missing())
	assert.Equal(t, [][]string{{"h2:2"}, nil, nil, nil, nil}, m.replicas)
	m, err = parse(t, rows("0 99 :0 r:2", "100 199 h1:1 :0 r:3", "200 16383 h2:2")) // Servers have lost their addresses to others.
	require.NoError(t, err)
	assert.Equal(t, []string{"", "h1:1", "h2:2"}, []string{m.Master(0), m.Master(100), m.Master(200)})
	assert.Equal(t, [][]string{{"r:3"}, nil}, m.replicas)
	assert.Equal(t, 100, m.Missing())
	m, err = parse(t, "*0\r\n")
	require.NoError(t, err)
	assert.Equal(t, Slots, m.Missing())
}

func TestParseSlotsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"-ERR This instance has cluster support disabled\r\n": "cluster support disabled",
		":1\r\n":                   "integer of 0",
		"$-1\r\n":                  "null of 0",
		"*1\r\n:1\r\n":             "entry 0: is integer",
		"*1\r\n*2\r\n:0\r\n:1\r\n": "entry 0: is array of 2",
		rows("0 16384 h:1"):        "no slot from 0 to 16383 at 1",
		rows("-1 5 h:1"):           "no slot from 0 to 16383 at 0",
		rows("5 4 h:1"):            "from 5 down to 4",
		rows("0 5 h:1", "5 6 g:1"): "entry 1: has slot 5, as an earlier one does",
		rows("0 5 h:-1"):           "malformed",
		rows("0 5 h:65536"):        "malformed",
		rows("0 5 h@x:1"):          "malformed",
		rows("0 5 h:1 /:1"):        "server 1: the address is malformed",
		rows("0 5 " + strings.Repeat("h", 254) + ":1"):         "malformed",
		"*1\r\n*3\r\n$1\r\n0\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n": "no slot",
		"*1\r\n*3\r\n:0\r\n:1\r\n$1\r\nh\r\n":                  "server 0: is bulk string",
		"*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n":            "server 0: is array of 1",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n":           "the host is integer",
		"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n$1\r\n1\r\n": "the port is bulk string",
	} {
		_, err := parse(t, text)
		assert.ErrorContains(t, err, want, text)
	}
}

// No reply makes the parser panic. What it accepts has addresses that can be dialed, each slot
// at most once, and a correct count.
func FuzzParseSlots(f *testing.F) {
	f.Add([]byte(rows("0 5460 h1:1 h2:2", "5461 16383 ?:3")))
	f.Add([]byte(rows("0 1 -:1", "1 2 :2")))
	f.Add([]byte("*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := resp.NewDecoder(resp.Limits{MaxDepth: 8, MaxElements: 1000, MaxBulkBytes: 1000, MaxLineBytes: 100})
		d.Reset(1)
		if _, done, err := d.Decode(data); err != nil || !done {
			return
		}
		m, err := ParseSlots(d.Replies().At(0), "10.0.0.9:7000")
		if err != nil {
			require.Nil(t, m)
			return
		}
		missing := 0
		for slot := range Slots {
			if addr := m.Master(slot); addr == "" {
				missing++
			} else {
				require.Regexp(t, `^(\[[!-~]+\]|[!-~]+):[0-9]+$`, addr)
			}
		}
		require.Equal(t, missing, m.Missing())
	})
}

const (
	second      = clock.Time(time.Second)
	start       = 100 * second
	millisecond = clock.Time(time.Millisecond)
)

// world is a State, the time, and the maps that nodes answer with. A node without a map answers
// with an error.
type world struct {
	*State
	t    *testing.T
	now  clock.Time
	maps map[string]string
}

func newWorld(t *testing.T, maps map[string]string, startup ...string) *world {
	return &world{State: NewState(startup, 7), t: t, now: start, maps: maps}
}

// refresh runs one refresh and returns the nodes that it asks. It returns none if no refresh is
// due.
func (w *world) refresh() (asked []string) {
	for addr, ok := w.Ask(w.now); ok; {
		asked = append(asked, addr)
		require.Zero(w.t, w.Due(), "one is under way")
		_, again := w.Ask(w.now)
		require.False(w.t, again, "one is in flight")
		m, err := (*Map)(nil), error(fmt.Errorf("%s is dead", addr))
		if text, alive := w.maps[addr]; alive {
			m, err = parse(w.t, text)
		}
		addr, ok = w.Answered(m, err, w.now)
	}
	return asked
}

// at returns the address of the node that has a slot.
func (w *world) at(slot int) string {
	if n := w.Owner(slot); n != None {
		return w.Addr(n)
	}
	return ""
}

// judge has a node answer a command for slot 5 with an error.
func (w *world) judge(from, message string, hops int) Verdict {
	return w.Judge([]byte(message), w.Node(from), 5, hops, true, w.now)
}

var whole = rows("0 8191 a:1 c:3", "8192 16383 b:2")

// A refresh asks up to three nodes, until one has a complete map. It asks a startup node, too,
// if it can.
func TestRefreshAsksUpToThreeNodes(t *testing.T) {
	half := rows("0 8191 a:1")
	for name, c := range map[string]struct {
		maps  map[string]string
		asked int
		b     string // who has slot 8192
		err   string
	}{
		"the first is complete": {map[string]string{"s1:1": whole, "s2:1": whole, "s3:1": whole, "s4:1": whole}, 1, "b:2", ""},
		"all answer half":       {map[string]string{"s1:1": half, "s2:1": half, "s3:1": half, "s4:1": half}, 3, "", ""},
		"all are dead":          {nil, 3, "", "is dead"},
		"all malformed":         {map[string]string{"s1:1": ":1\r\n", "s2:1": ":1\r\n", "s3:1": ":1\r\n", "s4:1": ":1\r\n"}, 3, "", "want an array"},
		"none has slots":        {map[string]string{"s1:1": "*0\r\n", "s2:1": "*0\r\n", "s3:1": "*0\r\n", "s4:1": "*0\r\n"}, 3, "", "no node of the Redis Cluster has slots"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.maps, "s1:1", "s2:1", "s3:1", "s4:1")
			assert.Len(t, w.refresh(), c.asked)
			assert.Equal(t, c.b, w.at(8192))
			if c.err == "" {
				require.NoError(t, w.Err())
				assert.True(t, w.Ready())
				assert.Equal(t, "a:1", w.at(0))
			} else {
				require.ErrorContains(t, w.Err(), c.err)
				assert.False(t, w.Ready())
			}
		})
	}
	t.Run("a seed is among them when all others are gone", func(t *testing.T) {
		w := newWorld(t, map[string]string{"s:1": whole}, "s:1")
		require.Equal(t, []string{"s:1"}, w.refresh())
		w.maps["s:1"] = rows("0 16383 d:4")
		w.Suspect(w.now)
		w.now += second
		assert.Contains(t, w.refresh(), "s:1")
		assert.Equal(t, "d:4", w.at(0))
	})
	for _, good := range []string{"s1:1", "s2:1", "s3:1"} { // It answers first, second or last.
		t.Run("the map that lacks least is kept: of "+good, func(t *testing.T) {
			w := newWorld(t, map[string]string{"s1:1": half, "s2:1": half, "s3:1": half}, "s1:1", "s2:1", "s3:1")
			w.maps[good] = rows("0 16382 b:2")
			assert.Len(t, w.refresh(), 3)
			assert.Equal(t, "b:2", w.at(8192))
			assert.LessOrEqual(t, w.Due(), w.now+second, "it asks again soon")
		})
	}
}

// Each cause of a refresh makes one due within 100 ms, but never earlier than allowed. Without
// a cause, a refresh comes within a minute.
func TestWhenTheMapIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		cause func(w *world)
		soon  bool
	}{
		"nothing":           {func(*world) {}, false},
		"a failed connect":  {func(w *world) { w.Suspect(w.now) }, true},
		"one timeout":       {func(w *world) { w.TimedOut(w.now) }, false},
		"slow timeouts":     {func(w *world) { w.TimedOut(w.now); w.TimedOut(w.now); w.TimedOut(w.now + 2*second) }, false},
		"burst of timeouts": {func(w *world) { w.TimedOut(w.now); w.TimedOut(w.now); w.TimedOut(w.now) }, true},
		"MOVED":             {func(w *world) { w.judge("a:1", "MOVED 5 b:2", 0) }, true},
		"malformed MOVED":   {func(w *world) { w.judge("a:1", "MOVED 5", 0) }, true},
		"READONLY":          {func(w *world) { w.judge("a:1", "READONLY You can't write", 0) }, true},
		"CLUSTERDOWN":       {func(w *world) { w.judge("a:1", "CLUSTERDOWN The cluster is down", 0) }, true},
		"ASK":               {func(w *world) { w.judge("a:1", "ASK 5 b:2", 0) }, false},
		"another error":     {func(w *world) { w.judge("a:1", "WRONGTYPE no", 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"s:1": whole, "a:1": whole, "b:2": whole, "c:3": whole}, "s:1")
			require.Len(t, w.refresh(), 1)
			due := w.Due()
			assert.Greater(t, due, w.now+44*second)
			assert.LessOrEqual(t, due, w.now+60*second)
			c.cause(w)
			if c.soon {
				assert.Equal(t, start+100*millisecond, w.Due())
			} else {
				assert.Equal(t, due, w.Due())
			}
			assert.Empty(t, w.refresh(), "too early")
			w.now = w.Due()
			assert.Len(t, w.refresh(), 1)
			assert.Greater(t, w.Due(), w.now+44*second, "one refresh is enough")
		})
	}
	t.Run("while one is under way", func(t *testing.T) {
		w := newWorld(t, nil, "s:1")
		_, ok := w.Ask(w.now)
		require.True(t, ok)
		w.Suspect(w.now)
		m, err := parse(t, whole)
		require.NoError(t, err)
		_, ok = w.Answered(m, nil, w.now+second)
		require.False(t, ok)
		assert.Equal(t, w.now+second, w.Due(), "the map may be older than the change")
	})
	t.Run("pauses between failures double", func(t *testing.T) {
		w := newWorld(t, nil, "s:1")
		pause := clock.Time(0)
		for range 12 {
			require.NotEmpty(t, w.refresh())
			assert.GreaterOrEqual(t, w.Due()-w.now, pause/2)
			pause = w.Due() - w.now
			require.GreaterOrEqual(t, pause, 100*millisecond)
			w.now = w.Due()
		}
		assert.LessOrEqual(t, pause, 5*second)
		assert.Greater(t, pause, 3*second)
	})
}

func TestJudge(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	type verdict struct {
		again  bool
		addr   string
		pause  time.Duration
		asking bool
	}
	for _, c := range []struct {
		message string
		hops    int
		want    verdict
		owner   string // of slot 5 afterwards
	}{
		{"MOVED 5 b:2", 0, verdict{true, "b:2", 0, false}, "b:2"},
		{"MOVED 5 b:2", 1, verdict{true, "b:2", ms(2), false}, "b:2"},
		{"MOVED 5 b:2", 2, verdict{true, "b:2", ms(4), false}, "b:2"},
		{"MOVED 5 b:2", 11, verdict{true, "b:2", ms(1024), false}, "b:2"},
		{"MOVED 5 b:2", 12, verdict{}, "b:2"},
		{"MOVED 5 stranger:9", 0, verdict{true, "stranger:9", 0, false}, "stranger:9"},
		{"MOVED 5 ::1:9", 0, verdict{true, "[::1]:9", 0, false}, "[::1]:9"},
		{"MOVED 5 :9", 0, verdict{true, "a:9", 0, false}, "a:9"},
		{"MOVED 5 ?:9", 0, verdict{true, "a:9", 0, false}, "a:9"},
		{"MOVED 5 a:1", 0, verdict{true, "a:1", ms(2), false}, "a:1"}, // to itself
		{"MOVED 5", 0, verdict{}, "a:1"},
		{"MOVED 16384 b:2", 0, verdict{}, "a:1"},
		{"MOVED -1 b:2", 0, verdict{}, "a:1"},
		{"MOVED 5 b:0", 0, verdict{}, "a:1"},
		{"MOVED 5 b:70000", 0, verdict{}, "a:1"},
		{"MOVED 5 b c:1", 0, verdict{}, "a:1"},
		{"ASK 5 b:2", 0, verdict{true, "b:2", 0, true}, "a:1"},
		{"ASK 5 b:2", 1, verdict{true, "b:2", ms(2), true}, "a:1"},
		{"TRYAGAIN Multiple keys", 0, verdict{true, "a:1", ms(2), false}, "a:1"},
		{"TRYAGAIN Multiple keys", 3, verdict{true, "a:1", ms(16), false}, "a:1"},
		{"READONLY You can't write", 0, verdict{true, "a:1", ms(2), false}, "a:1"},
		{"CLUSTERDOWN The cluster is down", 0, verdict{}, "a:1"},
		{"WRONGTYPE no", 0, verdict{}, "a:1"},
		{"", 0, verdict{}, "a:1"},
	} {
		w := newWorld(t, map[string]string{"s:1": whole}, "s:1")
		w.refresh()
		v := w.judge("a:1", c.message, c.hops)
		got := verdict{v.Again, "", v.Pause, v.Asking}
		if v.Again {
			got.addr = w.Addr(v.Node)
		} else {
			got.pause, got.asking = 0, false
		}
		assert.Equal(t, c.want, got, "%s after %d hops", c.message, c.hops)
		assert.Equal(t, c.owner, w.at(5), c.message)
		assert.Equal(t, "a:1", w.at(6), "a slot of its own")
	}
	w := newWorld(t, nil, "s:1")
	assert.False(t, w.Judge([]byte("READONLY no"), w.Node("a:1"), None, 0, false, w.now).Again, "a write is not sent again")
	assert.Equal(t, Verdict{Again: true, Node: w.Node("a:1"), Pause: ms(2)}, w.Judge([]byte("TRYAGAIN no"), w.Node("a:1"), None, 0, false, w.now))
}

// Numbers of nodes that have left are used again, but not those of nodes with slots.
func TestForget(t *testing.T) {
	w := newWorld(t, map[string]string{"s:1": whole}, "s:1")
	w.refresh()
	a, x := w.Node("a:1"), w.Node("x:1")
	assert.False(t, w.Forget(a))
	assert.True(t, w.Forget(x))
	assert.False(t, w.Forget(x), "twice")
	assert.Equal(t, x, w.Node("y:1"))
	for i := range 2 * serversMax {
		if w.Node(fmt.Sprintf("host:%d", i+1)) == None {
			assert.Equal(t, Verdict{}, w.judge("a:1", "MOVED 5 another:1", 0))
			return
		}
	}
	t.Fatal("no bound")
}

// TestModel sends commands through clusters that change. Slots move between nodes in Redis's
// own steps. Nodes answer with maps that are old, incomplete or missing, and they die and come
// back. A command that is sent on until the changes are over ends at the node that has its
// slot. Refreshes keep their distance.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		model(t, rand.New(rand.NewPCG(seed, 3)))
	}
}

func model(t *testing.T, rng *rand.Rand) {
	const servers, span = 5, 8 // slots move in spans of Slots/span
	addr := func(n int) string { return fmt.Sprintf("n%d:1", n) }
	var owner, target [span]int // target: who imports; -1: nobody
	for i := range span {
		owner[i], target[i] = rng.IntN(servers), -1
	}
	dead := make([]bool, servers)
	old := owner
	describe := func(owner [span]int) string {
		var ranges []string
		for i, n := range owner {
			ranges = append(ranges, fmt.Sprintf("%d %d %s", i*Slots/span, (i+1)*Slots/span-1, addr(n)))
		}
		return rows(ranges...)
	}
	s, now := NewState([]string{addr(0), addr(1)}, rng.Uint64()), start
	asked := clock.Time(0)
	refresh := func(calm bool) {
		to, ok := s.Ask(now)
		if ok {
			require.GreaterOrEqual(t, now-asked, 100*millisecond)
			asked = now
		}
		for asks := 0; ok; asks++ {
			require.Less(t, asks, refreshVoters)
			var n int
			_, err := fmt.Sscanf(to, "n%d:1", &n)
			require.NoError(t, err)
			m := (*Map)(nil)
			switch kind := rng.IntN(4); {
			case dead[n]:
			case calm || kind == 0:
				m, err = parse(t, describe(owner))
			case kind == 1:
				m, err = parse(t, describe(old))
			case kind == 2:
				m, err = parse(t, rows(fmt.Sprintf("0 %d %s", Slots/span-1, addr(owner[0]))))
			default:
				_, err = parse(t, ":1\r\n")
			}
			require.True(t, err == nil || m == nil)
			to, ok = s.Answered(m, err, now)
		}
	}
	// answer returns a node's answer to a command; "" is its reply.
	answer := func(n, i int, asking bool) string {
		slot := i * Slots / span
		switch {
		case owner[i] == n && target[i] >= 0 && rng.IntN(2) == 0:
			return fmt.Sprintf("ASK %d %s", slot, addr(target[i]))
		case owner[i] == n, target[i] == n && asking && rng.IntN(4) > 0:
			return ""
		case target[i] == n && asking:
			return "TRYAGAIN Multiple keys request during rehashing of slot"
		}
		return fmt.Sprintf("MOVED %d %s", slot, addr(owner[i]))
	}
	// ask sends one command on until it has a reply or an error, or its node is dead.
	ask := func(i int, calm bool) (at int, ok bool) {
		slot := i * Slots / span
		node, asking := s.Owner(slot), false
		if node == None {
			node = s.Node(addr(rng.IntN(servers)))
		}
		for hops := 0; ; hops++ {
			require.LessOrEqual(t, hops, 12)
			_, err := fmt.Sscanf(s.Addr(node), "n%d:1", &at)
			require.NoError(t, err)
			if dead[at] {
				s.Suspect(now)
				return at, false
			}
			message := answer(at, i, asking)
			if message == "" {
				return at, true
			}
			v := s.Judge([]byte(message), node, slot, hops, true, now)
			if !v.Again {
				return at, false
			}
			now = now.Add(v.Pause)
			node, asking = v.Node, v.Asking
			if !calm && rng.IntN(3) == 0 {
				owner[i] = rng.IntN(servers)
			}
		}
	}
	for range 60 {
		i := rng.IntN(span)
		switch rng.IntN(5) {
		case 0:
			old = owner
			target[i] = rng.IntN(servers)
		case 1:
			if target[i] >= 0 {
				old, owner[i], target[i] = owner, target[i], -1
			}
		case 2:
			dead[rng.IntN(servers)] = rng.IntN(2) == 0
		}
		now += clock.Time(rng.IntN(int(200 * millisecond)))
		refresh(false)
		ask(i, false)
	}
	// The cluster is calm: after one refresh, each command goes to its node at once.
	clear(dead)
	for i := range target {
		target[i] = -1
	}
	s.Suspect(now)
	for range 5 {
		now = max(now, s.Due())
		refresh(true)
		s.Suspect(now)
	}
	for i := range span {
		at, ok := ask(i, true)
		require.True(t, ok)
		require.Equal(t, owner[i], at)
		require.Equal(t, addr(owner[i]), s.Addr(s.Owner(i*Slots/span)))
	}
}

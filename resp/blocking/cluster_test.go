package blocking

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/resp/clusterclient"
)

// fakeSpan is the number of slots that have one owner each.
const fakeSpan = cluster.Slots / 16

// A fakeCluster has nodes with equally many slots. GET answers the key.
type fakeCluster struct {
	t     testing.TB
	nodes []*server
	addrs []string

	mu     sync.Mutex
	owner  func(slot int) int
	once   map[string]string // by key: one answer that replaces the usual one
	heard  []string          // "node command"
	mute   map[int]bool
	maps   string // what CLUSTER SLOTS answers instead
	rounds int    // CLUSTER SLOTS
}

func startCluster(t testing.TB, nodes int) *fakeCluster {
	c := &fakeCluster{t: t, once: map[string]string{}, mute: map[int]bool{}, owner: func(slot int) int { return slot / fakeSpan * nodes / (cluster.Slots / fakeSpan) }}
	for i := range nodes {
		s := serve(t, func(s *session) {
			asking := false
			for args := s.command(); args != nil; args = s.command() {
				text, answers := c.answer(i, args, &asking)
				if !answers {
					continue
				}
				if _, err := s.Write([]byte(text)); err != nil {
					return
				}
			}
		})
		c.change(func() { c.nodes, c.addrs = append(c.nodes, s), append(c.addrs, s.addr()) })
	}
	return c
}

func (c *fakeCluster) answer(node int, args []string, asking *bool) (text string, answers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := *asking
	*asking = args[0] == "ASKING"
	c.heard = append(c.heard, strconv.Itoa(node)+" "+strings.Join(args, " "))
	switch {
	case c.mute[node]:
		return "", false
	case args[0] == "CLUSTER" && args[1] == "MYID":
		return "$2\r\nid\r\n", true
	case args[0] == "CLUSTER":
		c.rounds++
		if c.maps != "" {
			return c.maps, true
		}
		return c.slots(), true
	case args[0] == "ASKING":
		return "+OK\r\n", true
	case args[0] == "PING":
		return "+PONG\r\n", true
	}
	key := args[1]
	if text, ok := c.once[key]; ok {
		delete(c.once, key)
		return text, true
	}
	slot := cluster.Slot([]byte(key))
	if at := c.owner(slot); at != node && !asked {
		return fmt.Sprintf("-MOVED %d %s\r\n", slot, c.addrs[at]), true
	}
	return string(redcon.AppendBulkString(nil, key)), true
}

func (c *fakeCluster) slots() string {
	var out strings.Builder
	fmt.Fprintf(&out, "*16\r\n")
	for i := range 16 {
		host, port, _ := net.SplitHostPort(c.addrs[c.owner(i*fakeSpan)])
		fmt.Fprintf(&out, "*3\r\n:%d\r\n:%d\r\n*3\r\n$%d\r\n%s\r\n:%s\r\n$2\r\nid\r\n", i*fakeSpan, (i+1)*fakeSpan-1, len(host), host, port)
	}
	return out.String()
}

// keyOf returns the nth key of a node.
func (c *fakeCluster) keyOf(node, nth int) string {
	for i := 0; ; i++ {
		key := "k" + strconv.Itoa(i)
		if c.owner(cluster.Slot([]byte(key))) == node {
			if nth--; nth < 0 {
				return key
			}
		}
	}
}

func (c *fakeCluster) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

// moveSlots gives the slots of a node to another one.
func (c *fakeCluster) moveSlots(from, to int) {
	c.change(func() {
		before := c.owner
		c.owner = func(slot int) int {
			if before(slot) == from {
				return to
			}
			return before(slot)
		}
	})
}

func (c *fakeCluster) client(o resp.Options) *Cluster {
	if o.Addr == "" {
		o.Addr = c.addrs[0] + "," + c.addrs[1]
	}
	client := NewCluster(clock.NewReal(), o, func(recovered any, stack []byte) { c.t.Errorf("panic: %v\n%s", recovered, stack) })
	c.t.Cleanup(client.Close)
	return client
}

// gets returns GET for keys of nodes, and their texts.
func (c *fakeCluster) gets(nodes ...int) (b *resp.Batch, want []string) {
	b = new(resp.Batch)
	for i, node := range nodes {
		key := c.keyOf(node, i)
		b.Cmd("GET", key)
		want = append(want, key)
	}
	return b, want
}

// texts runs a batch and returns the replies. It returns the text of an error.
func texts(client *Cluster, b *resp.Batch, deadline clock.Time) (got []string, err error) {
	err = client.Do(b, deadline, func(replies resp.Replies) error {
		for _, r := range replies.All() {
			if err := r.Err(); err != nil {
				got = append(got, err.Error())
			} else {
				got = append(got, string(r.Bytes()))
			}
		}
		return nil
	})
	return got, err
}

func TestClusterSplitsByNode(t *testing.T) {
	c := startCluster(t, 3)
	client := c.client(resp.Options{})
	b, want := c.gets(0, 1, 2, 0, 1, 2, 2, 1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				got, err := texts(client, b, 0)
				assert.NoError(t, err)
				assert.Equal(t, want, got)
				assert.LessOrEqual(t, client.Stats().Nodes, 3)
			}
		})
	}
	all.Wait()
	one, want := c.gets(1, 1)
	got, err := texts(client, one, 0)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	got, err = texts(client, new(resp.Batch), 0)
	require.NoError(t, err)
	assert.Empty(t, got)
	s := client.Stats()
	assert.Equal(t, 3, s.Nodes)
	assert.EqualValues(t, 162, s.Batches)
	assert.EqualValues(t, 1, s.Refreshes)
	assert.EqualValues(t, 160*8+2+1, s.Asked)
	assert.Equal(t, c.addrs[0]+","+c.addrs[1], client.Addr())
}

// Commands that are redirected are sent again, and no others. The client remembers where a slot
// has moved.
func TestClusterSendsRedirectedCommandsAgain(t *testing.T) {
	c := startCluster(t, 3)
	client := c.client(resp.Options{})
	b, want := c.gets(0, 1, 2, 0)
	_, err := texts(client, b, 0)
	require.NoError(t, err)
	slot := cluster.Slot([]byte(want[1]))
	for reply, again := range map[string][]string{
		"-TRYAGAIN Multiple keys request during rehashing of slot\r\n": {"1 GET " + want[1]},
		"-READONLY You can't write against a read only replica.\r\n":   {"1 GET " + want[1]},
		fmt.Sprintf("-MOVED %d %s\r\n", slot, c.addrs[1]):              {"1 GET " + want[1]},
		fmt.Sprintf("-ASK %d %s\r\n", slot, c.addrs[2]):                {"2 ASKING", "2 GET " + want[1]},
		fmt.Sprintf("-MOVED %d %s\r\n", slot, c.addrs[0]):              {"0 GET " + want[1], "1 GET " + want[1]},
	} {
		c.change(func() { c.once[want[1]], c.heard = reply, nil })
		got, err := texts(client, b, 0)
		require.NoError(t, err)
		require.Equal(t, want, got, reply)
		c.change(func() {
			var sent []string // beside each command of the batch once
			first := map[string]int{}
			for i, owner := range []int{0, 1, 2, 0} {
				first[fmt.Sprintf("%d GET %s", owner, want[i])]++
			}
			for _, h := range c.heard {
				if first[h]--; first[h] < 0 && !strings.HasSuffix(h, "CLUSTER SLOTS") {
					sent = append(sent, h)
				}
			}
			assert.Equal(t, again, sent, reply)
		})
	}
	c.moveSlots(1, 2)
	for range 2 {
		got, err := texts(client, b, 0)
		require.NoError(t, err)
		require.Equal(t, want, got)
		c.change(func() { c.heard = nil })
	}
	_, err = texts(client, b, 0)
	require.NoError(t, err)
	c.change(func() { assert.NotContains(t, c.heard, "1 GET "+want[1]) })
}

func TestClusterNodesFail(t *testing.T) {
	t.Run("a dead node fails only its commands", func(t *testing.T) {
		c := startCluster(t, 3)
		client := c.client(resp.Options{})
		b, want := c.gets(0, 1, 2, 1)
		_, err := texts(client, b, 0)
		require.NoError(t, err)
		c.nodes[1].close()
		got, err := texts(client, b, 0)
		require.NoError(t, err)
		assert.Equal(t, []string{want[0], want[2]}, []string{got[0], got[2]})
		assert.Contains(t, got[1], "redis "+c.addrs[1]+": ")
		assert.Contains(t, got[3], "redis "+c.addrs[1]+": ")
		assert.EqualValues(t, 1, client.Stats().Failed)
		c.moveSlots(1, 2)
		require.Eventually(t, func() bool {
			got, err := texts(client, b, 0)
			return err == nil && assert.ObjectsAreEqual(want, got)
		}, 10*time.Second, 5*time.Millisecond, "the map is asked for again")
		require.Eventually(t, func() bool {
			_, _ = texts(client, b, 0)
			return client.Stats().Nodes == 2 || client.Stats().Refreshes > 1
		}, 10*time.Second, 5*time.Millisecond)
	})
	t.Run("a mute node", func(t *testing.T) {
		c := startCluster(t, 2)
		client := c.client(resp.Options{RequestTimeout: 100 * time.Millisecond})
		b, want := c.gets(0, 1)
		_, err := texts(client, b, 0)
		require.NoError(t, err)
		c.change(func() { c.mute[1] = true })
		got, err := texts(client, b, 0)
		require.NoError(t, err)
		assert.Equal(t, want[0], got[0])
		assert.Contains(t, got[1], "redis "+c.addrs[1]+": timeout")
		assert.EqualValues(t, 1, client.Stats().TimedOut)
		_, err = texts(client, b, client.loop.Clock().Now().Add(20*time.Millisecond))
		require.ErrorIs(t, err, resp.ErrTimeout, "the call's own deadline")
	})
	t.Run("a pause ends by the deadline, and by Close", func(t *testing.T) {
		c := startCluster(t, 2)
		client := c.client(resp.Options{})
		b, _ := c.gets(0)
		c.change(func() { c.owner = func(int) int { return 1 } })
		_, err := texts(client, b, 0)
		require.NoError(t, err)
		loops := func(slot int) int { return 1 - len(c.heard)%2 } // Each node names the other one.
		c.change(func() { c.owner = loops })
		_, _ = texts(client, b, client.loop.Clock().Now().Add(20*time.Millisecond))
		done := make(chan error)
		go func() { _, err := texts(client, b, 0); done <- err }()
		client.Close()
		<-done
		_, err = texts(client, b, 0)
		require.ErrorIs(t, err, resp.ErrClosed)
	})
	for name, maps := range map[string]string{
		"no cluster": "-ERR This instance has cluster support disabled\r\n", "malformed": ":1\r\n", "no slots": "*0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, 2)
			c.change(func() { c.maps = maps })
			client := c.client(resp.Options{})
			b, want := c.gets(0, 1)
			_, err := texts(client, b, 0)
			require.ErrorIs(t, err, resp.ErrConnect)
			require.ErrorContains(t, err, c.addrs[0])
			c.change(func() { c.maps = "" })
			require.Eventually(t, func() bool {
				got, err := texts(client, b, 0)
				return err == nil && assert.ObjectsAreEqual(want, got)
			}, 10*time.Second, 5*time.Millisecond)
		})
	}
	t.Run("too large", func(t *testing.T) {
		c := startCluster(t, 2)
		b, _ := c.gets(0, 1, 0, 1, 0, 1)
		_, err := texts(c.client(resp.Options{MaxReplyBytes: 8}), b, 0)
		require.ErrorIs(t, err, resp.ErrTooLarge)
	})
	t.Run("a deadline that has passed", func(t *testing.T) {
		client := NewCluster(clock.NewReal(), resp.Options{Addr: "127.0.0.1:1"}, nil)
		defer client.Close()
		_, err := texts(client, new(resp.Batch), clock.First)
		require.ErrorIs(t, err, resp.ErrDeadline)
		var b resp.Batch
		b.Cmd("GET", "k")
		_, err = texts(client, &b, 0)
		require.ErrorIs(t, err, resp.ErrConnect)
	})
}

// A brokenWatch panics when replies come.
type brokenWatch struct{}

func (*brokenWatch) Sent(int, int, int, clock.Time) {}
func (*brokenWatch) Replied(int, int, int)          { panic("a deliberate bug") }

// A panic on the loop of the client goes to its owner. The call in whose work it came ends with an error, and others are as
// good as ever.
func TestAPanicOnTheLoopOfAClusterIsToldOf(t *testing.T) {
	for name, watch := range map[string]*brokenWatch{"reading": {}, "beginning": nil} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, 3)
			var told atomic.Int32
			o := resp.Options{Addr: c.addrs[0], ConnectTimeout: 10 * time.Second, RequestTimeout: 10 * time.Second}
			client := NewCluster(clock.NewReal(), o, func(_ any, stack []byte) {
				assert.NotEmpty(t, stack)
				told.Add(1)
			})
			defer client.Close()
			b, want := c.gets(0, 1, 2)
			good := func() {
				got, err := texts(client, b, 0)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			good()
			whole := client.client
			exchange := func(replace *clusterclient.Client) {
				ran := make(chan struct{})
				require.True(t, client.loop.Post(func() { client.client = replace; close(ran) }))
				<-ran
			}
			buf := new(ReplyBuffer)
			buf.reset(client.opts.Limits)
			if watch != nil {
				buf.Watch = watch
			} else {
				exchange(nil)
			}
			one, _ := c.gets(1)
			replies, err := client.Exchange(one, 0, buf)
			if err == nil {
				err = replies.At(0).Err() // It names the node.
			}
			require.Error(t, err)
			require.Eventually(t, func() bool { return told.Load() > 0 }, 10*time.Second, time.Millisecond)
			exchange(whole)
			good()
		})
	}
}

package blocking

import (
	"context"
	"fmt"
	"net"
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
)

// A fakeSentinel says where the master is, and tells subscribers of changes.
type fakeSentinel struct {
	*server
	mu     sync.Mutex
	answer string
	subs   []*session
	asked  int
	denied int // times that it has denied to tell
	denies bool
	others []string // further sentinels of which it tells
}

// tells encodes the answer to SENTINEL SENTINELS.
func (f *fakeSentinel) tells() []byte {
	out := redcon.AppendArray(nil, len(f.others))
	for _, addr := range f.others {
		host, port, _ := net.SplitHostPort(addr)
		out = redcon.AppendArray(out, 4)
		for _, field := range []string{"ip", host, "port", port} {
			out = redcon.AppendBulkString(out, field)
		}
	}
	return out
}

func startSentinel(t testing.TB) *fakeSentinel {
	f := &fakeSentinel{answer: "-ERR No such master with that name\r\n"}
	f.server = serve(t, func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			f.mu.Lock()
			switch args[0] {
			case "SUBSCRIBE":
				if f.denies {
					f.denied++
					_, _ = s.Write([]byte("-NOPERM this user has no permissions to run the 'subscribe' command\r\n"))
					break
				}
				f.subs = append(f.subs, s)
				_, _ = s.Write([]byte("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"))
			case "PING":
				_, _ = s.Write([]byte("*2\r\n$4\r\npong\r\n$0\r\n\r\n"))
			case "SENTINEL":
				if args[1] == "SENTINELS" {
					_, _ = s.Write(f.tells())
					break
				}
				f.asked++
				_, _ = s.Write([]byte(f.answer))
			default: // a name
				_, _ = s.Write([]byte("+OK\r\n"))
			}
			f.mu.Unlock()
		}
	})
	return f
}

// names has the sentinel name a master, and tell subscribers of it.
func (f *fakeSentinel) names(addr string, epoch int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	host, port, _ := net.SplitHostPort(addr)
	var out []byte
	fields := []string{"name", "m", "ip", host, "port", port, "flags", "master", "config-epoch", fmt.Sprint(epoch)}
	out = redcon.AppendArray(out, len(fields))
	for _, field := range fields {
		out = redcon.AppendBulkString(out, field)
	}
	f.answer = string(out)
	for _, s := range f.subs {
		out := redcon.AppendArray(nil, 3)
		for _, text := range []string{"message", "+switch-master", "m 127.0.0.1 1 " + host + " " + port} {
			out = redcon.AppendBulkString(out, text)
		}
		_, _ = s.Write(out)
	}
}

func (f *fakeSentinel) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fakeSentinel) says(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = text
}

// startRole starts a server with a role. It answers its name.
func startRole(t testing.TB, name string, role *atomic.Pointer[string]) *server {
	return serve(t, func(s *session) {
		for args := s.command(); args != nil; args = s.command() {
			text := redcon.AppendBulkString(nil, name)
			if args[0] == "ROLE" {
				text = redcon.AppendBulkString(redcon.AppendArray(nil, 1), *role.Load())
			}
			if _, err := s.Write(text); err != nil {
				return
			}
		}
	})
}

func roleOf(text string) *atomic.Pointer[string] {
	role := new(atomic.Pointer[string])
	role.Store(&text)
	return role
}

func ask(s *Sentinels) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.Master(ctx)
}

// The answer with the highest epoch counts. The client asks the next sentinel if one does not
// know the master or is dead.
func TestSentinelsNameTheMaster(t *testing.T) {
	a, b, c := startSentinel(t), startSentinel(t), startSentinel(t)
	var heard sync.Map
	s := NewSentinels(clock.NewReal(), resp.Options{Addr: a.addr() + "," + b.addr() + "," + c.addr(), Master: "m"}, func(addr string) { heard.Store(addr, true) })
	defer s.Close()
	_, err := ask(s)
	for _, sentinel := range []*fakeSentinel{a, b, c} {
		require.ErrorContains(t, err, "sentinel "+sentinel.addr()+": ERR No such master with that name")
	}
	for text, want := range map[string]string{
		":1\r\n": "SENTINEL MASTER: the reply is of kind", "*0\r\n": "SENTINEL MASTER: no address",
		"*4\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n$6\r\n999999\r\n": `no address in "h" and "999999"`,
	} {
		a.says(text)
		_, err = ask(s)
		require.ErrorContains(t, err, want)
	}
	a.server.close()
	b.names("10.0.0.1:6379", 3)
	for range 4 {
		addr, err := ask(s)
		require.NoError(t, err)
		assert.Equal(t, "10.0.0.1:6379", addr)
	}
	c.names("10.0.0.2:6379", 4)
	require.Eventually(t, func() bool { addr, err := ask(s); return err == nil && addr == "10.0.0.2:6379" }, 10*time.Second, time.Millisecond)
	for range 4 { // b has not heard of it.
		addr, err := ask(s)
		require.NoError(t, err)
		assert.Equal(t, "10.0.0.2:6379", addr)
	}
	for _, addr := range []string{"10.0.0.1:6379", "10.0.0.2:6379"} {
		_, ok := heard.Load(addr)
		assert.True(t, ok, addr)
	}
	s.Close()
	_, err = ask(s)
	require.Error(t, err)
}

// A client hears of a switch even if its connection to the old master still works. It refuses a
// server that says that it is not a master.
func TestClientFollowsTheMaster(t *testing.T) {
	sentinel, role := startSentinel(t), roleOf("slave")
	one, two := startRole(t, "one", roleOf("master")), startRole(t, "two", role)
	sentinel.names(one.addr(), 1)
	c := openClient(t, resp.Options{Addr: sentinel.addr(), Master: "m", RequestTimeout: 10 * time.Second})
	get := func() (text string, err error) {
		var b resp.Batch
		b.Cmd("GET", "x")
		err = c.Do(&b, 0, func(replies resp.Replies) error { text = string(replies.At(0).Bytes()); return nil })
		return text, err
	}
	text, err := get()
	require.NoError(t, err)
	assert.Equal(t, "one", text)
	require.Eventually(t, func() bool { sentinel.mu.Lock(); defer sentinel.mu.Unlock(); return len(sentinel.subs) > 0 }, 10*time.Second, time.Millisecond)
	sentinel.names(two.addr(), 2)
	require.Eventually(t, func() bool { _, err = get(); return err != nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, err, resp.ErrConnect)
	require.ErrorContains(t, err, "no master by its own account")
	master := "master"
	role.Store(&master)
	require.Eventually(t, func() bool { text, err = get(); return err == nil }, 10*time.Second, time.Millisecond)
	assert.Equal(t, "two", text)
	assert.True(t, strings.Contains(c.Addr(), sentinel.addr()))
}

// The client gives up a sentinel that falls silent, and listens to the next one.
func TestSentinelsThatFallSilent(t *testing.T) {
	silent := serve(t, func(s *session) {
		_ = s.command()
		_, _ = s.Write([]byte("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"))
		hang(s)
	})
	other := startSentinel(t)
	other.names("10.0.0.1:6379", 1)
	s := NewSentinels(clock.NewReal(), resp.Options{Addr: silent.addr() + "," + other.addr(), Master: "m"}, nil)
	defer s.Close()
	addr, err := ask(s)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.1:6379", addr)
	require.Eventually(t, func() bool { other.mu.Lock(); defer other.mu.Unlock(); return len(other.subs) > 0 }, 20*time.Second, 5*time.Millisecond)
	before := other.count()
	other.names("10.0.0.2:6379", 2)
	require.Eventually(t, func() bool { return s.isMaster("10.0.0.2:6379") }, 10*time.Second, time.Millisecond)
	assert.Greater(t, other.count(), before)
}

// A sentinel that denies to tell of switches is told of once. Another one is listened to, and the first is left alone.
func TestSentinelsThatDeny(t *testing.T) {
	denies, other := startSentinel(t), startSentinel(t)
	denies.denies = true
	denies.names("10.0.0.1:6379", 1)
	other.names("10.0.0.1:6379", 1)
	told := make(chan error, 10)
	s := NewSentinels(clock.NewReal(), resp.Options{
		Addr: denies.addr() + "," + other.addr(), Master: "m", OnDenied: func(addr string, err error) {
			assert.Equal(t, denies.addr(), addr)
			told <- err
		},
	}, nil)
	defer s.Close()
	_, err := ask(s)
	require.NoError(t, err)
	require.ErrorContains(t, <-told, "'subscribe'")
	hears := func(n int) func() bool {
		return func() bool { other.mu.Lock(); defer other.mu.Unlock(); return len(other.subs) >= n }
	}
	require.Eventually(t, hears(1), 20*time.Second, 5*time.Millisecond)
	other.mu.Lock()
	_ = other.subs[0].Close()
	other.mu.Unlock()
	require.Eventually(t, hears(2), 20*time.Second, 5*time.Millisecond)
	denies.mu.Lock()
	defer denies.mu.Unlock()
	assert.Equal(t, 1, denies.denied)
	assert.Empty(t, told)
}

// Any reply is an address or an error.
func FuzzParseMaster(f *testing.F) {
	for _, seed := range []string{"*4\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n$4\r\n6379\r\n", "*-1\r\n", "-ERR x\r\n", "*2\r\n$12\r\nconfig-epoch\r\n*0\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := resp.NewDecoder(resp.Options{}.WithDefaults().Limits)
		d.Reset(1)
		if _, done, err := d.Decode(data); err != nil || !done {
			return
		}
		addr, _, err := parseMaster(d.Replies().At(0))
		if err == nil {
			_, _, err = net.SplitHostPort(addr)
			require.NoError(t, err)
		}
	})
}

// All sentinels that the user has named are replaced. Those of which they told name the master, if most agree.
func TestSentinelsOfWhichOthersTell(t *testing.T) {
	named, b, c, d := startSentinel(t), startSentinel(t), startSentinel(t), startSentinel(t)
	named.others = []string{b.addr(), c.addr(), d.addr(), named.addr(), "127.0.0.1:1"}
	for _, f := range []*fakeSentinel{named, b, c, d} {
		f.names("10.0.0.1:6379", 1)
		f.others = named.others
	}
	s := NewSentinels(clock.NewReal(), resp.Options{Addr: named.addr(), Master: "m"}, nil)
	defer s.Close()
	check := func(want string) {
		t.Helper()
		got, err := ask(s)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	check("10.0.0.1:6379")
	b.names("10.9.9.9:6379", 7) // It belongs to somebody else, and the one that was named answers.
	check("10.0.0.1:6379")
	assert.Equal(t, 1, named.count()/2, "it was asked, and nobody else")
	named.close()
	check("10.0.0.1:6379")
	c.names("10.0.0.2:6379", 2)
	d.names("10.0.0.2:6379", 2)
	check("10.0.0.2:6379")
	d.names("10.0.0.3:6379", 3)
	_, err := ask(s)
	require.ErrorContains(t, err, "do not agree on the master")
	e := startSentinel(t) // All those of which the user's sentinel told are replaced, too.
	c.mu.Lock()
	c.others = []string{e.addr()}
	c.mu.Unlock()
	d.mu.Lock()
	d.others = c.others
	d.mu.Unlock()
	d.names("10.0.0.2:6379", 3)
	e.names("10.0.0.2:6379", 3)
	check("10.0.0.2:6379")
	for _, f := range []*fakeSentinel{b, c, d} {
		f.close()
	}
	check("10.0.0.2:6379")
}

// TestSentinelVotes: what sentinels say of which others have told, and what is known then.
func TestSentinelVotes(t *testing.T) {
	for name, c := range map[string]struct {
		said         []*Naming
		master, more string
		epoch        int64
	}{
		"one mind":               {[]*Naming{{"m:1", 5, []string{"a", "b"}}, {"m:1", 5, []string{"b", "a"}}, {"m:1", 5, []string{"c", "a", "b"}}}, "m:1", "a b c", 5},
		"one of another mind":    {[]*Naming{{"x:9", 9, []string{"a", "x"}}, {"m:1", 5, []string{"b", "a"}}, {"m:1", 5, []string{"c", "a", "b"}}}, "m:1", "b c a", 5},
		"one tells of its kind":  {[]*Naming{{"m:1", 5, []string{"a", "x", "y"}}, {"m:1", 5, []string{"b"}}, {"m:1", 5, []string{"c"}}}, "m:1", "a b c", 5},
		"one has a great epoch":  {[]*Naming{{"m:1", 1 << 60, []string{"a"}}, {"m:1", 5, []string{"b"}}, {"m:1", 5, []string{"c"}}}, "m:1", "a b c", 5},
		"one is behind":          {[]*Naming{{"m:1", 3, []string{"a"}}, {"m:1", 5, []string{"b"}}, {"m:1", 5, []string{"c"}}}, "m:1", "a b c", 5},
		"a new one":              {[]*Naming{{"m:1", 5, []string{"a", "n"}}, {"m:1", 5, []string{"b", "n"}}}, "m:1", "a b n", 5},
		"one alone":              {[]*Naming{{"m:1", 5, []string{"a", "b"}}}, "m:1", "a b", 5},
		"as many as against it":  {[]*Naming{{"m:1", 5, []string{"a"}}, {"x:9", 5, []string{"b"}}}, "", "z", 0},
		"none with its majority": {[]*Naming{{"m:1", 5, []string{"a"}}, {"x:9", 5, []string{"b"}}, {"y:9", 5, []string{"c"}}}, "", "z", 0},
		"none":                   {nil, "", "z", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSentinelState([]string{"named"})
			s.meet([]string{"z", "named"})
			err := s.Vote(c.said)
			assert.Equal(t, c.master == "", err != nil)
			assert.Equal(t, c.master, s.Master())
			assert.Equal(t, c.more, strings.Join(s.More(), " "))
			assert.Equal(t, c.epoch, s.epoch)
		})
	}
}

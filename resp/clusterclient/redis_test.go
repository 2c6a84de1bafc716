package clusterclient

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// An onRedis has a client of a real cluster, on its own loop.
type onRedis struct {
	t       *testing.T
	reactor *reactor.Reactor
	client  *Client
	cluster *testworld.Cluster
}

func startRedis(t *testing.T, o resp.Options) *onRedis {
	t.Helper()
	return startRedisOf(t, o, 3)
}

func startRedisOf(t *testing.T, o resp.Options, masters int) *onRedis {
	t.Helper()
	b := &onRedis{t: t, cluster: testworld.StartRedisCluster(t, masters)}
	b.reactor = reactor.New(reactor.Config{OnPanic: func(recovered any, stack []byte) { t.Errorf("panic: %v\n%s", recovered, stack) }})
	require.NoError(t, b.reactor.Start())
	o.Addr = strings.TrimPrefix(b.cluster.Addr(), "redis+cluster://")
	b.client = New(b.reactor.Loop(), b.reactor, o)
	t.Cleanup(func() {
		b.reactor.Loop().Post(b.client.Close)
		b.reactor.Stop()
		<-b.reactor.Loop().Done()
	})
	return b
}

// do runs one call and waits for it.
func (b *onRedis) do(commands ...[]string) (replies []string, err error) {
	done := make(chan struct{})
	call := &resp.Call{}
	for _, c := range commands {
		call.Batch.Cmd(c...)
	}
	call.Done = func(call *resp.Call) {
		defer close(done)
		err = call.Err
		for _, r := range call.Replies.All() {
			if e := r.Err(); e != nil {
				replies = append(replies, "error: "+e.Error())
			} else {
				replies = append(replies, string(r.Bytes()))
			}
		}
	}
	require.True(b.t, b.reactor.Loop().Post(func() {
		if failed := b.client.Do(call); failed != nil {
			err = failed
			close(done)
		}
	}))
	<-done
	return replies, err
}

const keys = 600

// all returns commands about all keys.
func all(name string, args ...string) (commands [][]string) {
	for i := range keys {
		commands = append(commands, append([]string{name, fmt.Sprint("key:", i)}, args...))
	}
	return commands
}

var (
	reshardSlots = flag.Int("reshard_slots", 40, "slots that move in a run of TestSlotsOfARealClusterMoveUnderLoad, at most 5460")
	reshardRuns  = flag.Int("reshard_runs", 1, "runs of TestSlotsOfARealClusterMoveUnderLoad")
)

// Slots of a real cluster move back and forth while requests read and write their keys. No
// command fails. Afterwards the client knows where each slot is.
func TestSlotsOfARealClusterMoveUnderLoad(t *testing.T) {
	b := startRedis(t, resp.Options{})
	var sets [][]string
	for i, c := range all("SET") {
		sets = append(sets, append(c, fmt.Sprint("value ", i)))
	}
	replies, err := b.do(sets...)
	require.NoError(t, err)
	for _, r := range replies {
		require.Equal(t, "OK", r)
	}
	for i := range keys {
		require.EqualValues(t, cluster.Slot(fmt.Append(nil, "key:", i)), atoi(b.cluster.Do(t, 0, "CLUSTER", "KEYSLOT", fmt.Sprint("key:", i))))
		if i == 50 {
			break
		}
	}
	var stop atomic.Bool
	var rounds atomic.Int64
	wrong := make(chan string, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for !stop.Load() {
			rounds.Add(1)
			got, err := b.do(all("GET")...)
			if err != nil {
				wrong <- err.Error()
				return
			}
			for i, value := range got {
				if value != fmt.Sprint("value ", i) {
					wrong <- fmt.Sprint("key:", i, ": ", value)
					return
				}
			}
		}
	}()
	for run := range *reshardRuns {
		for _, way := range [][2]int{{0, 1}, {1, 0}, {0, 2}, {2, 0}} {
			b.cluster.Agree(t)
			for i := range *reshardSlots {
				slot := i * (5460 / *reshardSlots)
				require.Zero(t, b.cluster.Owner(slot))
				b.cluster.Move(t, slot, way[0], way[1])
			}
			if len(wrong) > 0 {
				t.Fatal(<-wrong)
			}
		}
		if *reshardRuns > 1 {
			t.Logf("run %d: %d slots moved to another master and back, twice; %d rounds of %d reads so far, none failed", run+1, *reshardSlots, rounds.Load(), keys)
		}
	}
	enough := rounds.Load() + 3
	require.Eventually(t, func() bool { return rounds.Load() > enough || len(wrong) > 0 }, 20*time.Second, time.Millisecond)
	stop.Store(true)
	<-finished
	select {
	case text := <-wrong:
		t.Fatal(text)
	default:
	}
}

func atoi(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// A master that is killed fails the commands for its keys, and no others. Each error names it.
// When it is back, nothing fails.
func TestAMasterOfARealClusterIsKilled(t *testing.T) {
	b := startRedis(t, resp.Options{})
	_, err := b.do(all("SET", "x")...)
	require.NoError(t, err)
	b.cluster.Nodes[1].Kill()
	replies, err := b.do(all("GET")...)
	require.NoError(t, err)
	dead := 0
	for i, r := range replies {
		if b.cluster.Owner(cluster.Slot(fmt.Append(nil, "key:", i))) == 1 {
			assert.Contains(t, r, b.cluster.Nodes[1].Addr)
			dead++
		} else {
			assert.Equal(t, "x", r)
		}
	}
	assert.NotZero(t, dead)
	b.cluster.Nodes[1].Restart(t)
	require.Eventually(t, func() bool {
		replies, err := b.do(all("SET", "y")...)
		for _, r := range replies {
			if r != "OK" {
				return false
			}
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
}

// A master with a replica is killed. The commands for its keys fail until the replica is
// elected, and no others. Soon after the election nothing fails, since the client asks for the
// map again by itself.
func TestAReplicaOfARealClusterTakesOver(t *testing.T) {
	b := startRedis(t, resp.Options{})
	b.cluster.AddReplica(t, 1)
	_, err := b.do(all("SET", "x")...)
	require.NoError(t, err)
	replica := len(b.cluster.Nodes) - 1
	require.Eventually(t, func() bool {
		return b.cluster.Do(t, replica, "DBSIZE") == b.cluster.Do(t, 1, "DBSIZE")
	}, 10*time.Second, 10*time.Millisecond)
	b.cluster.Nodes[1].Kill()
	isMaster := func() bool { return strings.HasPrefix(b.cluster.Do(t, replica, "ROLE"), "$6\r\nmaster") }
	require.False(t, isMaster())
	elected := time.Time{}
	require.Eventually(t, func() bool {
		if elected.IsZero() && isMaster() {
			elected = time.Now()
		}
		replies, err := b.do(all("GET")...)
		require.NoError(t, err)
		failed := 0
		for i, r := range replies {
			if r != "x" {
				failed++
				require.Equal(t, 1, b.cluster.Owner(cluster.Slot(fmt.Append(nil, "key:", i))), r)
			}
		}
		return failed == 0
	}, 30*time.Second, 10*time.Millisecond)
	require.True(t, isMaster(), "nobody else has its keys")
	if !elected.IsZero() { // otherwise it was elected since the last look
		t.Logf("the client followed %v after the election", time.Since(elected))
		assert.Less(t, time.Since(elected), 5*time.Second, "on an idle machine it takes a second")
	}
}

// CLUSTER FAILOVER makes a replica the master, and then the old master again. No read fails.
func TestAFailoverByHandFailsNoRead(t *testing.T) {
	b := startRedis(t, resp.Options{})
	b.cluster.AddReplica(t, 1)
	_, err := b.do(all("SET", "x")...)
	require.NoError(t, err)
	replica := len(b.cluster.Nodes) - 1
	for _, next := range []int{replica, 1} {
		require.Eventually(t, func() bool {
			text, err := b.cluster.Try(next, "INFO", "replication")
			return err == nil && strings.Contains(text, "master_link_status:up")
		}, 10*time.Second, 10*time.Millisecond)
		after, again := 0, time.Time{} // The masters may refuse to vote.
		for end := time.Now().Add(30 * time.Second); after < 20 && time.Now().Before(end); {
			if after == 0 && time.Now().After(again) {
				_, _ = b.cluster.Try(next, "CLUSTER", "FAILOVER")
				again = time.Now().Add(6 * time.Second)
			}
			replies, err := b.do(all("GET")...)
			require.NoError(t, err)
			for i, r := range replies {
				require.Equal(t, "x", r, i)
			}
			if text, err := b.cluster.Try(next, "ROLE"); err == nil && strings.HasPrefix(text, "$6\r\nmaster") {
				after++
			}
		}
		require.Equal(t, 20, after)
	}
}

// A master is silent for a while (SIGSTOP). The commands for its keys fail by timeouts that
// name it, and no others. Soon after it goes on, nothing fails.
func TestAMasterOfARealClusterIsPaused(t *testing.T) {
	b := startRedis(t, resp.Options{RequestTimeout: 200 * time.Millisecond})
	_, err := b.do(all("SET", "x")...)
	require.NoError(t, err)
	process := b.cluster.Nodes[1].Process()
	require.NoError(t, process.Signal(syscall.SIGSTOP))
	for range 3 {
		replies, err := b.do(all("GET")...)
		require.NoError(t, err)
		for i, r := range replies {
			if b.cluster.Owner(cluster.Slot(fmt.Append(nil, "key:", i))) == 1 {
				require.Contains(t, r, "redis "+b.cluster.Nodes[1].Addr+": ")
			} else {
				require.Equal(t, "x", r)
			}
		}
	}
	require.NoError(t, process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		replies, err := b.do(all("GET")...)
		return err == nil && !slices.ContainsFunc(replies, func(r string) bool { return r != "x" })
	}, 20*time.Second, 10*time.Millisecond)
}

// reads returns how many GETs a node has run.
func (b *onRedis) reads(node int) int {
	_, after, _ := strings.Cut(b.cluster.Do(b.t, node, "INFO", "commandstats"), "cmdstat_get:calls=")
	text, _, _ := strings.Cut(after, ",")
	return atoi(text)
}

// Replicas of a real cluster are read. A replica whose link to its master is cut is not: reads
// go to the master, none fails, and none is older than its write. When the link is back, the
// replica is read again. If a replica is killed, only reads on their way to it fail.
func TestReplicasOfARealClusterAreRead(t *testing.T) {
	for _, from := range []resp.ReadFrom{resp.ReadReplica, resp.ReadNearest} {
		t.Run(string(from), func(t *testing.T) { replicasAreRead(t, from) })
	}
}

// withReplicas starts three masters with a replica each. They have a value for each key. Node 3
// + n follows master n.
func withReplicas(t *testing.T, o resp.Options) *onRedis {
	b := startRedis(t, o)
	for master := range 3 {
		b.cluster.AddReplica(t, master)
	}
	for i := range keys { // The client does not know anything yet.
		key := fmt.Sprint("key:", i)
		b.cluster.Do(t, b.cluster.Owner(cluster.Slot([]byte(key))), "SET", key, "none")
	}
	for master := range 3 {
		b.cluster.Follow(t, 3+master, master)
	}
	return b
}

// isRead returns once a replica is read.
func (b *onRedis) isRead(replica int) {
	b.t.Helper()
	before := b.reads(replica)
	require.Eventually(b.t, func() bool {
		_, err := b.do(all("GET")...)
		return err == nil && b.reads(replica) > before
	}, 30*time.Second, 10*time.Millisecond)
}

// A replica hangs (SIGSTOP). The reads on their way to it fail. Then its master is read, and
// nothing fails. Once the replica goes on, it is read again.
func TestAReplicaOfARealClusterHangs(t *testing.T) {
	b := withReplicas(t, resp.Options{ReadFrom: resp.ReadReplica, RequestTimeout: 200 * time.Millisecond})
	b.isRead(4)
	process := b.cluster.Nodes[4].Process()
	require.NoError(t, process.Signal(syscall.SIGSTOP))
	failed := 0
	require.Eventually(t, func() bool {
		replies, err := b.do(all("GET")...)
		require.NoError(t, err)
		whole := true
		for _, r := range replies {
			if r != "none" {
				require.Contains(t, r, "redis "+b.cluster.Nodes[4].Addr+": ")
				whole = false
			}
		}
		if !whole {
			failed++
		}
		return whole
	}, 20*time.Second, time.Millisecond)
	assert.LessOrEqual(t, failed, 1, "reads that were on their way")
	for range 50 {
		replies, err := b.do(all("GET")...)
		require.NoError(t, err)
		for _, r := range replies {
			require.Equal(t, "none", r)
		}
	}
	require.NoError(t, process.Signal(syscall.SIGCONT))
	b.isRead(4)
}

// A replica that lags behind its master by more than the bound is not read. It is read again
// when it has caught up.
func TestAReplicaOfARealClusterLagsBehind(t *testing.T) {
	b := withReplicas(t, resp.Options{ReadFrom: resp.ReadReplica, ReplicaMaxLagBytes: 1})
	b.isRead(4)
	var last atomic.Bool
	ended := make(chan struct{})
	go func() { // A replica seems to lag by one write while somebody writes without a pause.
		defer close(ended)
		for key := "key:0"; !last.Load(); {
			for node := range 3 {
				if b.cluster.Owner(cluster.Slot([]byte(key))) == node {
					_, _ = b.cluster.Try(node, "SET", key, "none")
				}
			}
		}
	}()
	writes := b.cluster.Owner(cluster.Slot([]byte("key:0")))
	require.Eventually(t, func() bool {
		before := b.reads(3 + writes)
		for range 20 {
			_, err := b.do(all("GET")...)
			require.NoError(t, err)
		}
		return b.reads(3+writes) == before
	}, 30*time.Second, time.Millisecond, "its master is read")
	last.Store(true)
	<-ended
	b.isRead(3 + writes)
}

func replicasAreRead(t *testing.T, from resp.ReadFrom) {
	b := withReplicas(t, resp.Options{ReadFrom: from, ReplicaMaxLagBytes: 1 << 20})
	write := func(value string) {
		replies, err := b.do(all("SET", value)...)
		require.NoError(t, err)
		for _, r := range replies {
			require.Equal(t, "OK", r)
		}
	}
	read := func() (values map[string]int) {
		values = map[string]int{}
		replies, err := b.do(all("GET")...)
		require.NoError(t, err)
		for _, r := range replies {
			values[r]++
		}
		return values
	}
	write("one")
	for master := range 3 {
		b.cluster.Follow(t, 3+master, master)
	}
	if from == resp.ReadReplica {
		require.Eventually(t, func() bool {
			require.Equal(t, map[string]int{"one": keys}, read())
			return b.reads(3) > 0 && b.reads(4) > 0 && b.reads(5) > 0
		}, 10*time.Second, 10*time.Millisecond)
		masters := b.reads(0) + b.reads(1) + b.reads(2)
		read()
		assert.Equal(t, masters, b.reads(0)+b.reads(1)+b.reads(2), "masters are not read")
	} else {
		read()
	}
	// The link of one replica is cut.
	b.cluster.Do(t, 4, "CONFIG", "SET", "masteruser", "nobody")
	b.cluster.Do(t, 4, "CONFIG", "SET", "masterauth", "wrong")
	b.cluster.Do(t, 4, "CLIENT", "KILL", "TYPE", "master")
	require.Eventually(t, func() bool {
		for value := range read() {
			require.Equal(t, "one", value)
		}
		return strings.Contains(b.cluster.Do(t, 4, "INFO", "replication"), "master_link_status:down")
	}, 10*time.Second, 10*time.Millisecond)
	cut := time.Now()
	for time.Since(cut) < 1500*time.Millisecond { // The client asks each second.
		require.Equal(t, map[string]int{"one": keys}, read())
	}
	write("two")
	b.cluster.Follow(t, 3, 0)
	b.cluster.Follow(t, 5, 2)
	before := b.reads(4)
	for range 50 {
		require.Equal(t, map[string]int{"two": keys}, read())
	}
	assert.Equal(t, before, b.reads(4), "it is not read")
	// It is back.
	b.cluster.Do(t, 4, "CONFIG", "SET", "masteruser", "")
	b.cluster.Do(t, 4, "CONFIG", "SET", "masterauth", "")
	if from == resp.ReadReplica {
		require.Eventually(t, func() bool {
			require.Equal(t, map[string]int{"two": keys}, read())
			return b.reads(4) > before
		}, 30*time.Second, 10*time.Millisecond)
	}
	b.cluster.Nodes[4].Kill()
	failed := 0
	require.Eventually(t, func() bool {
		values := read()
		two := values["two"]
		delete(values, "two")
		for text := range values {
			require.Contains(t, text, b.cluster.Nodes[4].Addr+": connection lost")
		}
		if two < keys {
			failed++
		}
		return two == keys
	}, 10*time.Second, time.Millisecond)
	assert.LessOrEqual(t, failed, 1, "calls that were on their way")
	for range 50 {
		require.Equal(t, map[string]int{"two": keys}, read())
	}
	counted := make(chan resp.Stats, 1)
	require.True(t, b.reactor.Loop().Post(func() { counted <- b.client.Stats() }))
	stats := <-counted
	t.Logf("%d commands for replicas, %d sent again", stats.ReplicaReads, stats.Redirected)
}

// A replica is reset, and becomes a cluster of its own at the same address. Whomever a refresh asks first, the client stays with the
// cluster that the user has named. Then the named master dies, whose other replica takes over: the client follows.
func TestAReplicaOfARealClusterBelongsElsewhere(t *testing.T) {
	var turns atomic.Int32
	b := startRedisOf(t, resp.Options{Seed: uint64(time.Now().UnixNano()), OnTurn: func(turn resp.ClusterTurn) {
		if turn.Err == nil {
			turns.Add(1)
		}
	}}, 1)
	b.cluster.AddReplica(t, 0)
	b.cluster.AddReplica(t, 0)
	_, err := b.do(all("SET", "ours")...)
	require.NoError(t, err)
	refreshed := func() {
		b.reactor.Loop().Post(func() {
			b.client.state.Suspect(b.reactor.Loop().Now())
			b.client.schedule(b.client.state.Due())
		})
		require.Eventually(t, func() bool {
			over := make(chan bool)
			b.reactor.Loop().Post(func() { over <- !b.client.state.Suspects() && b.client.state.Asked() == "" })
			return <-over
		}, 10*time.Second, 10*time.Millisecond)
	}
	right := func() bool {
		replies, err := b.do(all("GET")...)
		return err == nil && !slices.ContainsFunc(replies, func(text string) bool { return text != "ours" })
	}
	for range 3 { // The client learns of the replicas.
		refreshed()
		require.True(t, right())
	}
	id := b.cluster.Do(t, 1, "CLUSTER", "MYID")
	b.cluster.Do(t, 1, "CLUSTER", "RESET", "HARD")
	for _, node := range []int{0, 2} {
		if _, err := b.cluster.Try(node, "CLUSTER", "FORGET", id); err != nil {
			require.ErrorContains(t, err, "Unknown node") // It has not met the replica, or heard that it is gone.
		}
	}
	b.cluster.Do(t, 1, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	for range 20 {
		refreshed()
		require.True(t, right())
	}
	assert.Zero(t, turns.Load())
	b.cluster.Nodes[0].Kill()
	b.cluster.Do(t, 2, "CLUSTER", "FAILOVER", "TAKEOVER")
	require.Eventually(t, right, 20*time.Second, 50*time.Millisecond)
	assert.NotZero(t, turns.Load())
}

// Another server takes over the address of a master: a master that was reset, which has all slots of a cluster of its own, and
// then a server without a cluster. Until a map names another address, its keys fail, and no answer is empty. Once the master
// is back with its own id, nothing fails.
func TestAnotherServerAtTheAddressOfARealMaster(t *testing.T) {
	var turns atomic.Int32
	b := startRedis(t, resp.Options{OnTurn: func(resp.ClusterTurn) { turns.Add(1) }})
	_, err := b.do(all("SET", "ours")...)
	require.NoError(t, err)
	refused := func() {
		failed := 0
		for range 20 {
			replies, err := b.do(all("GET")...)
			require.NoError(t, err)
			for i, text := range replies {
				if b.cluster.Owner(cluster.Slot(fmt.Append(nil, "key:", i))) == 1 {
					require.Contains(t, text, "redis "+b.cluster.Nodes[1].Addr+": ")
					failed++
				} else {
					require.Equal(t, "ours", text)
				}
			}
		}
		assert.NotZero(t, failed)
	}
	for node := range 3 { // Otherwise they refuse all keys soon.
		b.cluster.Do(t, node, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	b.cluster.Nodes[1].Kill()
	other := testworld.StartRedis(t, "--port", fmt.Sprint(b.cluster.Nodes[1].Port))
	refused()
	assert.EqualValues(t, 1, turns.Load(), "it is told once")
	other.Kill()
	b.cluster.Nodes[1].Restart(t) // with its id
	require.Eventually(t, func() bool {
		replies, err := b.do(all("SET", "ours")...)
		return err == nil && !slices.ContainsFunc(replies, func(text string) bool { return text != "OK" })
	}, 30*time.Second, 20*time.Millisecond)
	b.cluster.Do(t, 1, "FLUSHALL")
	b.cluster.Do(t, 1, "CLUSTER", "RESET", "HARD")
	b.cluster.Do(t, 1, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	require.Eventually(t, func() bool { // It keeps the connections that it has until the others notice that it is gone.
		b.reactor.Loop().Post(b.client.suspect)
		replies, err := b.do(all("GET")...)
		return err == nil && !slices.Contains(replies, "")
	}, 30*time.Second, 20*time.Millisecond)
	refused()
}

package testworld

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/process"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// formed bounds how long it takes until the nodes of a new cluster know each other.
const formed = 30 * time.Second

// Cluster is a Redis Cluster of masters that belongs to one test. Any goroutine.
type Cluster struct {
	Nodes   []*Redis // master i of n has the slots from i*16384/n to (i+1)*16384/n-1; replicas follow
	masters int
	ids     []string
	secure  []int    // by node: its port with TLS; empty: nodes have none
	args    []string // of each node
}

// StartRedisCluster starts a Redis Cluster of empty masters. It returns once each of them knows
// all. Further arguments are those of StartRedis.
func StartRedisCluster(t testing.TB, masters int, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, &Cluster{masters: masters, args: args})
}

// StartRedisSecureCluster is StartRedisCluster with TLS between nodes, and to clients at
// SecureAddrs. The certificate, which is its own authority, and the key are files in PEM. The
// nodes also accept plain connections, at their Addr.
func StartRedisSecureCluster(t testing.TB, masters int, cert, key string) *Cluster {
	t.Helper()
	return startCluster(t, &Cluster{masters: masters, secure: []int{}, args: []string{
		"--tls-cluster", "yes", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no",
	}})
}

func startCluster(t testing.TB, c *Cluster) *Cluster {
	t.Helper()
	masters := c.masters
	nodes := make([]process.ClusterNode, masters)
	for i := range masters {
		bus := c.start(t)
		nodes[i] = process.ClusterNode{Port: c.port(i), Bus: bus, Do: func(words ...string) (string, error) { return c.Do(t, i, words...), nil }}
	}
	require.NoError(t, process.FormCluster(nodes))
	return c
}

// start starts a node that knows no others. It returns the port on which other nodes talk to
// it.
func (c *Cluster) start(t testing.TB) (port int) {
	t.Helper()
	args, port, err := process.ClusterArgs()
	require.NoError(t, err)
	args = append(args, c.args...)
	if c.secure != nil {
		c.secure = append(c.secure, freePort(t))
		args = append(args, "--tls-port", c.port(len(c.Nodes)))
	}
	c.Nodes = append(c.Nodes, StartRedis(t, args...))
	c.ids = append(c.ids, c.Do(t, len(c.Nodes)-1, "CLUSTER", "MYID"))
	return port
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// port returns the port by which nodes know a node.
func (c *Cluster) port(node int) string {
	if c.secure != nil {
		return strconv.Itoa(c.secure[node])
	}
	return strconv.Itoa(c.Nodes[node].Port)
}

// SecureAddrs returns the addresses of a cluster with TLS, "host:port,host:port".
func (c *Cluster) SecureAddrs() string {
	addrs := make([]string, len(c.secure))
	for i := range c.secure {
		addrs[i] = "127.0.0.1:" + c.port(i)
	}
	return strings.Join(addrs, ",")
}

// AddMaster starts a master without slots. It returns once all nodes know the master and it
// knows them.
func (c *Cluster) AddMaster(t testing.TB) (node int) {
	t.Helper()
	node = len(c.Nodes)
	port := c.start(t)
	c.Do(t, 0, "CLUSTER", "MEET", "127.0.0.1", c.port(node), strconv.Itoa(port))
	require.Eventually(t, func() bool {
		for i := range c.Nodes {
			if info := c.Do(t, i, "CLUSTER", "INFO"); !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprint("cluster_known_nodes:", len(c.Nodes))) {
				return false
			}
		}
		return true
	}, formed, 20*time.Millisecond)
	return node
}

// AddReplica starts a replica of a master. It returns once the replica has all of the master's
// data and all nodes know it.
func (c *Cluster) AddReplica(t testing.TB, master int) {
	t.Helper()
	masters := len(c.Nodes)
	port := c.start(t)
	c.Do(t, master, "CLUSTER", "MEET", "127.0.0.1", c.port(masters), strconv.Itoa(port))
	require.Eventually(t, func() bool {
		_, err := c.Try(masters, "CLUSTER", "REPLICATE", c.ids[master])
		return err == nil
	}, formed, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		for i := range masters {
			if !strings.Contains(c.Do(t, i, "CLUSTER", "NODES"), c.ids[masters]+" 127.0.0.1:"+c.port(masters)+"@"+strconv.Itoa(port)+" slave "+c.ids[master]) {
				return false
			}
		}
		return strings.Contains(c.Do(t, masters, "INFO", "replication"), "master_link_status:up")
	}, formed, 20*time.Millisecond)
}

// Follow waits for a replica of a master to which somebody has written. It returns once the
// replica has all that the master had at the call, and all nodes tell clients of the replica.
func (c *Cluster) Follow(t testing.TB, replica, master int) {
	t.Helper()
	offset := func(node int, name string) (n int64) {
		_, after, _ := strings.Cut(c.Do(t, node, "INFO", "replication"), name+":")
		text, _, _ := strings.Cut(after, "\r")
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	want := offset(master, "master_repl_offset")
	require.Eventually(t, func() bool {
		for i := range c.Nodes {
			if !strings.Contains(c.Do(t, i, "CLUSTER", "SLOTS"), ":"+c.port(replica)+"\r\n") {
				return false
			}
		}
		return offset(replica, "slave_repl_offset") >= want
	}, formed, 10*time.Millisecond)
}

// Addr returns the address of the cluster, as users name it.
func (c *Cluster) Addr() string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Do sends a command to a node and returns the reply. For a string or an integer, that is its
// text, otherwise the whole encoding. An error reply fails the test.
func (c *Cluster) Do(t testing.TB, node int, args ...string) string {
	t.Helper()
	reply, err := c.Try(node, args...)
	require.NoError(t, err, "%s", args)
	return reply
}

// Try is Do for commands that may be refused or get no answer.
func (c *Cluster) Try(node int, args ...string) (string, error) {
	conn, err := net.Dial("tcp", c.Nodes[node].Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	command := redcon.AppendArray(nil, len(args))
	for _, a := range args {
		command = redcon.AppendBulkString(command, a)
	}
	if _, err := conn.Write(command); err != nil {
		return "", err
	}
	var data []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := conn.Read(chunk)
		data = append(data, chunk[:n]...)
		if size, reply := redcon.ReadNextRESP(data); size > 0 {
			if reply.Type == redcon.Error {
				return "", fmt.Errorf("node %d: %s", node, reply.Data)
			}
			return string(reply.Data), nil
		}
		if err != nil {
			return "", fmt.Errorf("node %d: %w", node, io.ErrUnexpectedEOF)
		}
	}
}

// Owner returns the node that has had a slot from the start.
func (c *Cluster) Owner(slot int) int {
	for i := range c.masters {
		if slot < (i+1)*slots/c.masters {
			return i
		}
	}
	return -1
}

// Agree returns once all nodes have heard of the latest epoch. A slot that moves to another
// node before that may move back, because the node would use an epoch number that is in use.
func (c *Cluster) Agree(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		epochs := map[string]bool{}
		for i := range c.Nodes {
			_, after, _ := strings.Cut(c.Do(t, i, "CLUSTER", "INFO"), "cluster_current_epoch:")
			epoch, _, _ := strings.Cut(after, "\r")
			epochs[epoch] = true
		}
		return len(epochs) == 1
	}, formed, 10*time.Millisecond)
}

// Move moves a slot with its keys from one node to another, in the steps of redis-cli --cluster
// reshard. Call Agree before a move to another node than that of the last move. It calls each of between before the first key moves,
// after each batch of keys, of which a batch has one key if between has any, and before the nodes know the new owner.
func (c *Cluster) Move(t testing.TB, slot, from, to int, between ...func()) {
	t.Helper()
	number := strconv.Itoa(slot)
	c.Do(t, to, "CLUSTER", "SETSLOT", number, "IMPORTING", c.ids[from])
	c.Do(t, from, "CLUSTER", "SETSLOT", number, "MIGRATING", c.ids[to])
	count := "100"
	if len(between) > 0 {
		count = "1"
	}
	for {
		for _, f := range between {
			f()
		}
		keys := strings.Fields(c.Do(t, from, "CLUSTER", "GETKEYSINSLOT", number, count))
		var names []string
		for i := 1; i < len(keys); i += 2 { // $n, the key
			names = append(names, keys[i])
		}
		if len(names) == 0 {
			break
		}
		c.Do(t, from, append([]string{"MIGRATE", "127.0.0.1", c.port(to), "", "0", "5000", "KEYS"}, names...)...)
	}
	for _, node := range []int{to, from} {
		c.Do(t, node, "CLUSTER", "SETSLOT", number, "NODE", c.ids[to])
	}
}

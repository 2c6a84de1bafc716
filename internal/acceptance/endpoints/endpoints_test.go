package endpoints_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp/cluster"
)

// A server that refuses commands for reasons of its own has its own error text. The detail says
// what the error means.
func TestErrorTextsOfServers(t *testing.T) {
	server, err := resptest.NewServer(resptest.Followers)
	require.NoError(t, err)
	defer server.Close()
	enginetest.ForModels(t, rankd.Options{Redis: server.Addr()}, func(t *testing.T, e *rankd.Engine) {
		for reply, want := range map[string][2]string{
			"LOADING Redis is loading the dataset in memory": {"Redis is loading its data", "ask again later"},
			"READONLY You can't write":                       {"Redis is a read-only replica", "the address of its primary"},
			"MASTERDOWN Link with MASTER is down":            {"Redis replica has lost its primary", "the address of the primary"},
			"TRYAGAIN Multiple keys":                         {"Redis Cluster is moving keys", "ask again"},
			"CLUSTERDOWN Hash slot not served":               {"Redis Cluster is down", "see CLUSTER INFO"},
			"MOVED 3999 127.0.0.1:6381":                      {"Redis Cluster redirects", "name the cluster as redis+cluster://host:port"},
			"ASK 3999 127.0.0.1:6381":                        {"Redis Cluster redirects", "name the cluster as redis+cluster://host:port"},
			"NOAUTH Authentication required.":                {"Redis wants a password", "password_file or password_env"},
			"NOPERM no permissions":                          {"Redis denies permission", "see ACL LIST"},
			"ERR internal error":                             {"Redis error", "ERR internal error"},
		} {
			server.Set(resptest.On(resptest.Instead("-"+reply+"\r\n"), "HGETALL"))
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 7})
			var failed *rankd.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, want[0], failed.Text)
			assert.Contains(t, failed.Detail, reply)
			assert.Contains(t, failed.Detail, want[1])
			assert.ErrorIs(t, err, rankd.ErrRedis)
		}
		server.Set(nil)
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 7})
		require.NoError(t, err, "the connection is unharmed")
	})
}

// A server that wants a password of an engine that has none says so to the names of a new connection, and to each command if it ignores the names.
func TestAPasswordIsWanted(t *testing.T) {
	server, err := resptest.NewServer(resptest.Followers)
	require.NoError(t, err)
	defer server.Close()
	for name, commands := range map[string][]string{"names": {"CLIENT", "HGETALL"}, "commands": {"HGETALL"}} {
		server.Set(resptest.On(resptest.Instead("-NOAUTH Authentication required.\r\n"), commands...))
		for _, model := range enginetest.Models {
			e := enginetest.Open(t, rankd.Options{Redis: server.Addr(), Model: model})
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 7})
			var failed *rankd.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "Redis wants a password", failed.Text, "%s %s", name, model)
			assert.Contains(t, failed.Detail, "NOAUTH Authentication required. (the server wants a password: give the endpoint one, with password_file or password_env)")
			assert.ErrorIs(t, err, rankd.ErrRedis)
		}
	}
}

// A node that answers in place of the owner of a slot is named beside the addresses that the user knows.
func TestARefusalOfAClusterNamesTheNode(t *testing.T) {
	c := testworld.StartRedisCluster(t, 2)
	slot := cluster.Slot([]byte("user:1"))
	owner := c.Owner(slot)
	enginetest.ForModels(t, rankd.Options{Redis: c.Addr()}, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
		require.NoError(t, err)
		c.Do(t, owner, "CLUSTER", "DELSLOTS", fmt.Sprint(slot))
		defer c.Do(t, owner, "CLUSTER", "ADDSLOTS", fmt.Sprint(slot))
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 1})
		var failed *rankd.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "Redis Cluster is down", failed.Text)
		assert.Contains(t, failed.Detail, ": redis "+c.Nodes[owner].Addr+": CLUSTERDOWN ")
	})
}

// A master that refuses the connection is named beside the sentinels that have named it.
func TestAMasterThatRefusesIsNamed(t *testing.T) {
	s := testworld.StartRedisSentinels(t, 2, 1)
	s.Do(t, 0, "ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-role")
	master := "master " + s.Nodes[0].Addr + ": "
	for url, want := range map[string]string{
		strings.Replace(s.Addr(), "://", "://u:wrong@", 1): "cannot connect: " + master + "WRONGPASS",
		strings.Replace(s.Addr(), "://", "://u:p@", 1):     "cannot connect: " + master + "NOPERM this user has no permissions to run the 'role' command",
	} {
		enginetest.ForModels(t, rankd.Options{Redis: url, Registry: enginetest.CacheTables(""), Plans: enginetest.ViewerPlan}, func(t *testing.T, e *rankd.Engine) {
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, s.Nodes[2].Addr)
		})
	}
	unknown := strings.TrimSuffix(s.Addr(), testworld.MasterName) + "nobody"
	enginetest.ForModels(t, rankd.Options{Redis: unknown, Registry: enginetest.CacheTables(""), Plans: enginetest.ViewerPlan}, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
		require.ErrorContains(t, err, ": ERR No such master with that name; sentinel 127.0.0.1:")
	})
}

// forward accepts connections on a unix socket and carries their bytes to and from addr.
func forward(t *testing.T, addr string) (path string) {
	dir, err := os.MkdirTemp("", "rankd") // short: systems bound the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	ln, err := net.Listen("unix", path)
	require.NoError(t, err)
	var live sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); live.Wait() })
	live.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			pipe := func(dst, src net.Conn) {
				_, _ = io.Copy(dst, src)
				_ = dst.Close()
			}
			live.Go(func() { pipe(out, in) })
			live.Go(func() { pipe(in, out) })
		}
	})
	return path
}

// A unix socket serves every model, named in the options or in a registry. Errors contain its
// path.
func TestUnixSocket(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	path := forward(t, redis.Addr())
	enginetest.ForModels(t, rankd.Options{Redis: "unix://" + path}, func(t *testing.T, e *rankd.Engine) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
		require.NoError(t, err)
		assert.Equal(t, 50, a.Len())
	})
	enginetest.ForModels(t, rankd.Options{Redis: "unix://" + path + ".none"}, func(t *testing.T, e *rankd.Engine) {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
		require.ErrorContains(t, err, "redis unix:"+path+".none: cannot connect")
		assert.ErrorIs(t, err, os.ErrNotExist)
	})
	// A URL may name the Redis inside the process, too.
	e, err := rankd.Open(rankd.Options{EmbeddedRedis: func() (string, func(), error) { return "unix://" + path, func() {}, nil }})
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
	require.NoError(t, err)
}

// The keys of a killed node of a Redis Cluster fail with an error that names the node. A node
// of the plan with on_error "partial" drops their rows and says so. Requests that need other
// keys are answered.
func TestADeadNodeOfARedisCluster(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) { aDeadNodeOfARedisCluster(t, model) })
	}
}

func aDeadNodeOfARedisCluster(t *testing.T, model rankd.Model) {
	c := testworld.StartRedisCluster(t, 3)
	owner := func(key string) int { return c.Owner(cluster.Slot([]byte(key))) }
	write := func(args ...string) { c.Do(t, owner(args[1]), args...) }
	write("HSET", "user:1", "country", "DE")
	dead := 0
	for dead == owner("user:1") || dead == owner("follow:1") {
		dead++
	}
	var want []int64
	for id := 100; id < 160; id++ {
		key := fmt.Sprint("follow:", id)
		write("RPUSH", "follow:1", strconv.Itoa(id))
		write("RPUSH", key, strconv.Itoa(1000+id))
		if owner(key) != dead && owner(fmt.Sprint("user:", id)) != dead && owner(fmt.Sprint("user:", 1000+id)) != dead {
			want = append(want, int64(1000+id))
		}
	}
	require.Less(t, len(want), 60)
	nodes := `{"node_id": "me", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
		{"node_id": "friends", "op": "core::follow", "inputs": ["me"], "params": {"endpoint": "ep_0001", "fanout": 60}%[1]s},
		{"node_id": "out", "op": "core::follow", "inputs": ["friends"], "params": {"endpoint": "ep_0001", "fanout": 5}%[1]s}`
	e := enginetest.Open(t, rankd.Options{Redis: c.Addr(), Model: model, Plans: enginetest.LenientPlans(map[string]string{
		"partial": fmt.Sprintf(nodes, `, "on_error": "partial"`), "strict": fmt.Sprintf(nodes, ""),
	})})
	a, err := e.Rank(t.Context(), rankd.Request{Plan: "strict", UserID: 1})
	require.NoError(t, err)
	assert.Equal(t, 60, a.Len())
	c.Nodes[dead].Kill()
	a, err = e.Rank(t.Context(), rankd.Request{Plan: "partial", UserID: 1})
	require.NoError(t, err)
	assert.Equal(t, want, enginetest.IDsOf(a.Output(0)))
	missing := a.Completeness()
	require.Len(t, missing, 2)
	for _, node := range missing {
		assert.Equal(t, rankd.NodePartial, node.Status)
		require.ErrorContains(t, node.Err, c.Nodes[dead].Addr)
	}
	_, err = e.Rank(t.Context(), rankd.Request{Plan: "strict", UserID: 1})
	require.ErrorContains(t, err, "redis "+c.Nodes[dead].Addr+": ")
	require.ErrorIs(t, err, rankd.ErrRedis)
	c.Nodes[dead].Restart(t)
	require.Eventually(t, func() bool {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "partial", UserID: 1})
		return err == nil && !a.Degraded()
	}, 30*time.Second, 20*time.Millisecond)
}

// Each built-in plan has the same answers from a Redis Cluster as from one server, on all
// models, even while slots move.
func TestAnswersFromARedisClusterAreTheSame(t *testing.T) {
	c := testworld.StartRedisCluster(t, 3)
	answersAreTheSame(t, c, c.Addr())
}

// The same is true of reads from replicas while no slots move. A replica answers for a key that
// has moved away as if the key did not exist.
func TestAnswersFromReplicasOfARedisClusterAreTheSame(t *testing.T) {
	c := testworld.StartRedisCluster(t, 3)
	for master := range 3 {
		c.AddReplica(t, master)
	}
	require.NoError(t, devredis.Load(t.Context(), c.Addr()))
	for master := range 3 {
		c.Follow(t, 3+master, master)
	}
	want := answersOf(t, enginetest.Open(t, rankd.Options{}))
	for _, from := range []string{"replica", "nearest", "replica&replica_max_lag_bytes=1000000"} {
		for _, model := range enginetest.Models {
			for _, cache := range []registry.CacheMode{registry.CacheOff, registry.CacheTTL} {
				t.Run(fmt.Sprint(from, " ", model, " cache ", cache), func(t *testing.T) {
					e := enginetest.Open(t, rankd.Options{Redis: c.Addr() + "?read_from=" + from, Model: model, Cache: cache})
					require.Equal(t, want, answersOf(t, e))
					require.Eventually(t, func() bool {
						require.Equal(t, want, answersOf(t, e))
						return from == "nearest" || cache != registry.CacheOff || e.Metrics().Redis[0].ReplicaReads > 0
					}, 10*time.Second, time.Millisecond)
				})
			}
		}
	}
}

// A user who lacks a right that no call needs is told of in the log, with the node and the right, once, on all models. Requests go on.
func TestRightsThatTheLogTellsOf(t *testing.T) {
	replicated := testworld.StartRedisCluster(t, 1)
	replicated.AddReplica(t, 0)
	replicated.Follow(t, 1, 0)
	followed := testworld.StartRedisSentinels(t, 1, 1)
	for name, c := range map[string]struct {
		*testworld.Cluster
		url        string
		node       int // that denies
		right, log string
	}{
		"READONLY":  {replicated, strings.Replace(replicated.Addr(), "://", "://u:p@", 1) + "?read_from=replica", 1, "readonly", "a node of a Redis Cluster denies what reads from replicas need"},
		"INFO":      {replicated, strings.Replace(replicated.Addr(), "://", "://u:p@", 1) + "?read_from=replica", 1, "info", "a node of a Redis Cluster denies what reads from replicas need"},
		"SUBSCRIBE": {followed.Cluster, followed.Addr() + "?sentinel_username=u&sentinel_password=p", 2, "subscribe", "a sentinel denies to tell of new masters"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Do(t, 0, "HSET", "user:1", "country", "DE")
			for node := range c.Nodes {
				c.Do(t, node, "ACL", "SETUSER", "u", "reset", "on", ">p", "~*", "&*", "+@all", "-"+c.right)
			}
			for _, model := range enginetest.Models {
				var log enginetest.SyncBuffer
				e := enginetest.Open(t, rankd.Options{Redis: c.url, Model: model, Registry: enginetest.CacheTables(""), Plans: enginetest.ViewerPlan, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				require.Eventually(t, func() bool {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
					require.NoError(t, err)
					return strings.Contains(log.String(), c.log)
				}, 10*time.Second, time.Millisecond)
				for range 10 {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
					require.NoError(t, err)
				}
				assert.Equal(t, 1, strings.Count(log.String(), c.log))
				assert.Contains(t, log.String(), "address="+c.Nodes[c.node].Addr)
				assert.Contains(t, log.String(), "'"+c.right+"'")
				assert.Zero(t, e.Metrics().Redis[0].ReplicaReads)
				assert.LessOrEqual(t, e.Metrics().Redis[0].Connects, uint64(3))
			}
		})
	}
}

// Settings for replicas must fit the endpoint, wherever they are given.
func TestReplicasThatAreNotRead(t *testing.T) {
	for _, o := range []rankd.Options{
		{Redis: "redis+cluster://h?read_from=replica", Cache: registry.CacheBroadcast},
		{Redis: "redis+cluster://h?read_from=nearest", Cache: registry.CacheTrack},
	} {
		for _, model := range enginetest.Models {
			o.Model = model
			_, err := rankd.Open(o)
			require.ErrorContains(t, err, "read_from replica and nearest exclude the caches broadcast and track")
		}
	}
	_, err := rankd.Open(rankd.Options{Redis: "redis+sentinel://h/m?read_from=replica"})
	require.ErrorContains(t, err, "read_from needs a Redis Cluster; replicas of a single master, or of one that sentinels know, are not read")
}

// The same is true of a cluster whose nodes use TLS between each other and to clients.
func TestAnswersFromARedisClusterWithTLSAreTheSame(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	servetest.WriteCertificate(t, cert, key, 1)
	c := testworld.StartRedisSecureCluster(t, 3, cert, key)
	answersAreTheSame(t, c, "rediss+cluster://"+c.SecureAddrs()+"?tls_ca="+cert)
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Redis: "rediss+cluster://" + c.SecureAddrs(), Model: model})
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
		require.ErrorContains(t, err, "certificate signed by unknown authority", model)
	}
}

// answersOf returns the answers of all plans to some users.
func answersOf(t *testing.T, e *rankd.Engine) (all []string) {
	plans, err := e.Plans()
	assert.NoError(t, err)
	for _, p := range plans {
		for user := range int64(8) {
			a, err := e.Rank(t.Context(), rankd.Request{Plan: p.Name, UserID: user + 1})
			if err != nil {
				all = append(all, fmt.Sprint(p.Name, " ", user, ": ", err))
				continue
			}
			all = append(all, fmt.Sprint(p.Name, " ", user, ": ", enginetest.RowsOf(a)))
		}
	}
	return all
}

// answersAreTheSame compares the answers of a cluster with those of one server, while slots
// move. Clients know the cluster by one address.
func answersAreTheSame(t *testing.T, c *testworld.Cluster, addr string) {
	require.NoError(t, devredis.Load(t.Context(), c.Addr()))
	answers := func(e *rankd.Engine) []string { return answersOf(t, e) }
	want := answers(enginetest.Open(t, rankd.Options{}))
	require.Greater(t, len(want), 40)
	for i, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			e := enginetest.Open(t, rankd.Options{Redis: addr, Model: model})
			require.Equal(t, want, answers(e))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for range 3 {
					assert.Equal(t, want, answers(e))
				}
			}()
			c.Agree(t)
			from := i % 3
			for user := range 30 {
				for _, key := range []string{"user:", "follow:"} {
					if slot := cluster.Slot(fmt.Append(nil, key, user)); c.Owner(slot) == from {
						c.Move(t, slot, from, (from+1)%3)
					}
				}
			}
			<-ended
			assert.Positive(t, e.Metrics().Redis[0].Redirected)
			assert.Equal(t, 3, e.Metrics().Redis[0].Nodes)
		})
	}
}

// A Redis Cluster has one database. A cluster none of whose nodes answers is a Redis error on
// all models.
func TestAServerThatIsNotARedisCluster(t *testing.T) {
	const addr = "redis+cluster://127.0.0.1:1,127.0.0.1:2"
	_, err := rankd.Open(rankd.Options{Redis: addr + "/1"})
	require.ErrorContains(t, err, "a Redis Cluster has only database 0")
	enginetest.ForModels(t, rankd.Options{Redis: addr, Cache: registry.CacheBroadcast}, func(t *testing.T, e *rankd.Engine) {
		_, err = e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 7})
		require.ErrorContains(t, err, "redis 127.0.0.1:1,127.0.0.1:2: cannot connect: redis 127.0.0.1:")
		assert.Equal(t, 1, strings.Count(err.Error(), "cannot connect"), err)
		require.ErrorIs(t, err, rankd.ErrRedis)
	})
}

// An engine keeps no password where a careless log could print it.
func TestEnginesHidePasswords(t *testing.T) {
	const canary = "c4n4ry"
	e := enginetest.Open(t, rankd.Options{Redis: "redis://u:" + canary + "@127.0.0.1:1"})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.False(t, strings.Contains(fmt.Sprintf(verb, e.Registry().Endpoints()[0]), canary), verb)
	}
	_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: 7})
	require.Error(t, err)
	assert.NotContains(t, fmt.Sprintf("%+v", err), canary)

	_, err = rankd.Open(rankd.Options{Redis: "redis://u:" + canary + "@127.0.0.1:x"})
	require.ErrorContains(t, err, "Redis must be host:port or a URL")
	assert.NotContains(t, err.Error(), canary)

	missing := "redis://127.0.0.1:1?password_env=RANKD_TEST_NO_SUCH"
	_, err = rankd.Open(rankd.Options{Redis: missing})
	require.ErrorContains(t, err, "endpoint ep_0001: password_env RANKD_TEST_NO_SUCH: the environment has no such variable")
	enginetest.Open(t, rankd.Options{Redis: missing, NoSecrets: true})
}

// A table's password for TLS is never sent in clear text to an address without TLS: the engine
// does not open.
func TestPasswordsForTLSStayThere(t *testing.T) {
	tables := enginetest.OwnTables()
	tables["endpoints.dev.toml"] = &fstest.MapFile{Data: []byte(`[[endpoint]]
id = "ep_0001"
name = "redis_default"
kind = "redis"
url = "rediss://u:c4n4ry@redis.example.com"
`)}
	o := rankd.Options{Registry: tables, Plans: enginetest.ViewerPlan, Redis: "127.0.0.1:1"}
	_, err := rankd.Open(o)
	require.EqualError(t, err, "endpoint ep_0001: the table sends its password through TLS, and the address of --redis has no TLS: it must begin with rediss, or name a password itself")
	o.NoSecrets = true
	enginetest.Open(t, o)
	o.NoSecrets, o.Redis = false, "redis://u:own@127.0.0.1:1"
	enginetest.Open(t, o)
}

// A master that sentinels know is killed, and its replica takes over. All models follow within
// a second of the election. Then an operator moves the master, and no request gets an answer
// from the old one.
func TestAMasterThatSentinelsMove(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) { aMasterThatSentinelsMove(t, model, "") })
	}
	for _, mode := range enginetest.TrackedModes {
		t.Run("cache "+mode, func(t *testing.T) { aMasterThatSentinelsMove(t, rankd.Reactor, "cache = \""+mode+"\"\n") })
	}
}

func aMasterThatSentinelsMove(t *testing.T, model rankd.Model, policy string) {
	t.Parallel()
	const patience = 90 * time.Second // On a busy machine, sentinels do nothing for half a minute (TILT).
	s := testworld.StartRedisSentinels(t, 2, 2)
	s.Do(t, 0, "HSET", "user:1", "country", "DE")
	require.Eventually(t, func() bool { return s.Do(t, 1, "EXISTS", "user:1") == "1" }, 10*time.Second, 5*time.Millisecond)
	e := enginetest.Open(t, rankd.Options{Redis: s.Addr(), Model: model, Registry: enginetest.CacheTables(policy), Plans: enginetest.ViewerPlan})
	country := func() (country string, err error) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
		if err != nil {
			return "", err
		}
		for c := range a.Candidates() {
			country, _ = c.String("country")
		}
		return country, nil
	}
	got, err := country()
	require.NoError(t, err)
	require.Equal(t, "DE", got)
	s.Nodes[0].Kill()
	says := func(node int, want string, args ...string) bool {
		text, err := s.Try(node, args...)
		return err == nil && strings.Contains(text, want)
	}
	named := func(node int) bool {
		return says(2, fmt.Sprint(s.Nodes[node].Port), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", testworld.MasterName)
	}
	var elected time.Time
	require.Eventually(t, func() bool {
		if elected.IsZero() && named(1) {
			elected = time.Now()
			s.Do(t, 1, "HSET", "user:1", "country", "FR")
		}
		got, err := country()
		return err == nil && got == "FR"
	}, patience, 10*time.Millisecond)
	require.False(t, elected.IsZero())
	t.Logf("the engine followed %v after the election", time.Since(elected))
	assert.Less(t, time.Since(elected), 5*time.Second, "on an idle machine it takes a second")
	// The old master comes back as a replica, and becomes the master again.
	s.Nodes[0].Restart(t)
	require.Eventually(t, func() bool {
		return says(0, "master_link_status:up", "INFO", "replication") || says(0, "none", "REPLICAOF", "127.0.0.1", fmt.Sprint(s.Nodes[1].Port))
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return says(2, "OK", "SENTINEL", "FAILOVER", testworld.MasterName) }, patience, 100*time.Millisecond)
	require.Eventually(t, func() bool { return named(0) && says(0, "0", "HSET", "user:1", "country", "PL") }, patience, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		got, err := country()
		return err == nil && got == "PL"
	}, 10*time.Second, 10*time.Millisecond)
}

// Sentinels with TLS, users and passwords name the master on all models. An error tells of a
// sentinel that refuses or that is not trusted.
func TestSentinelsWithPasswordAndTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	servetest.WriteCertificate(t, cert, key, 1)
	secure := func(port string) []string {
		return []string{"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no", "--tls-replication", "yes"}
	}
	masterPort, sentinelPort := freePort(t), freePort(t)
	master := testworld.StartRedis(t, secure(masterPort)...)
	enginetest.Store(t, master.Addr, []string{"HSET", "user:1", "country", "DE"})
	conf, password := filepath.Join(dir, "sentinel.conf"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `sentinel monitor %s 127.0.0.1 %s 1
user default off
user asker on >s3cret ~* &+switch-master -@all +sentinel|master +subscribe +ping
`, testworld.MasterName, masterPort), 0o600))
	sentinel := testworld.StartRedis(t, append([]string{conf, "--sentinel"}, secure(sentinelPort)...)...)
	login := "sentinel_username=asker&sentinel_password_file=" + password
	trusted := "&tls_server_name=rankd&tls_ca=" + cert
	through := "rediss+sentinel://127.0.0.1:" + sentinelPort + "/" + testworld.MasterName + "?"
	plain := "rediss+sentinel://" + sentinel.Addr + "/" + testworld.MasterName + "?sentinel_tls=false&"
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			for _, url := range []string{through + login + trusted, plain + login + trusted} {
				e := enginetest.Open(t, rankd.Options{Redis: url, Model: model, Registry: enginetest.CacheTables(""), Plans: enginetest.ViewerPlan})
				var country string
				require.Eventually(t, func() bool {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
					if err != nil {
						return false
					}
					for c := range a.Candidates() {
						country, _ = c.String("country")
					}
					return true
				}, 20*time.Second, 10*time.Millisecond)
				assert.Equal(t, "DE", country)
			}
			for url, want := range map[string]string{
				through + "sentinel_username=asker&sentinel_password=wrong" + trusted: "WRONGPASS",
				through + trusted[1:]:                        "NOAUTH Authentication required. (the sentinel wants a password: give the endpoint one for sentinels, with sentinel_password_file or sentinel_password_env)",
				through + login:                              "certificate",
				plain + "sentinel_password=s3cret" + trusted: "WRONGPASS",
				"rediss+sentinel://" + sentinel.Addr + "/" + testworld.MasterName + "?" + login + trusted: "connect timeout",
			} {
				e := enginetest.Open(t, rankd.Options{Redis: url, Model: model, Registry: enginetest.CacheTables(""), Plans: enginetest.ViewerPlan})
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
				require.ErrorContains(t, err, want, url)
				assert.NotContains(t, err.Error(), "s3cret")
			}
			_, err := rankd.Open(rankd.Options{Redis: through + "sentinel_password_file=/no/such/file", Model: model})
			require.ErrorContains(t, err, "sentinel_password_file")
		})
	}
}

// TestPasswordsThatChange: a file or the program gives the password. Each new connection logs
// in with the current one, on all models.
func TestPasswordsThatChange(t *testing.T) {
	folder := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range enginetest.Models {
		for _, from := range []string{"file", "program"} {
			t.Run(string(model)+" "+from, func(t *testing.T) {
				server := miniredis.RunT(t)
				_, err := server.Lpush("rows", "7")
				require.NoError(t, err)
				file := filepath.Join(t.TempDir(), "password")
				var password atomic.Pointer[string]
				change := func(to string) {
					require.NoError(t, errors.Join(os.WriteFile(file+"~", []byte(to+"\n"), 0o600), os.Rename(file+"~", file)))
					password.Store(&to)
				}
				change("one")
				server.RequireUserAuth("ranker", "one")
				o := rankd.Options{Model: model, Plans: folder, Redis: "redis://ranker@" + server.Addr() + "?password_file=" + file}
				failing := atomic.Bool{}
				if from == "program" {
					o.Redis = server.Addr()
					o.Credentials = map[string]func() (string, string, error){"ep_0001": func() (string, string, error) {
						if failing.Load() {
							return "", "", errors.New("the vault is closed")
						}
						return "ranker", *password.Load(), nil
					}}
				}
				e := enginetest.Open(t, o)
				ask := func() error {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
					return err
				}
				require.NoError(t, ask())
				change("two")
				require.NoError(t, ask(), "a connection stays")

				server.RequireUserAuth("ranker", "two")
				server.Close()
				require.Eventually(t, func() bool { return ask() != nil }, 10*time.Second, time.Millisecond)
				require.NoError(t, server.Restart())
				require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, time.Millisecond, "the next one has the new password")

				server.RequireUserAuth("ranker", "three")
				server.Close()
				require.Eventually(t, func() bool { return ask() != nil }, 10*time.Second, time.Millisecond)
				require.NoError(t, server.Restart())
				require.Eventually(t, func() bool {
					err := ask()
					return err != nil && strings.Contains(err.Error(), "WRONGPASS")
				}, 10*time.Second, time.Millisecond, "the file is late")
				if from == "program" {
					failing.Store(true)
					require.Eventually(t, func() bool {
						err := ask()
						return err != nil && strings.Contains(err.Error(), "the password: the vault is closed")
					}, 10*time.Second, time.Millisecond)
					failing.Store(false)
				}
				change("three")
				require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, time.Millisecond)
			})
		}
	}
}

// TestServersThatAllowLittle: a user that may only read, as with managed services, needs
// neither CLIENT nor CONFIG. With a tracked cache the engine says which permission is missing,
// and keeps values by their age.
func TestServersThatAllowLittle(t *testing.T) {
	server := testworld.StartRedis(t)
	enginetest.Store(t, server.Addr, []string{"RPUSH", "rows", "7"}, []string{"ACL", "SETUSER", "ranker", "on", ">pw", "~*", "-@all", "+@read", "+ping"},
		[]string{"ACL", "SETUSER", "tracker", "on", ">pw", "~*", "-@all", "+@read", "+ping", "+hello", "+client|tracking"})
	folder := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Model: model, Plans: folder, Redis: "redis://ranker:pw@" + server.Addr})
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.NoError(t, err, model)
	}
	for _, user := range []string{"ranker", "tracker"} {
		e := enginetest.Open(t, rankd.Options{Plans: folder, Redis: "redis://" + user + ":pw@" + server.Addr, Cache: registry.CacheBroadcast})
		require.Eventually(t, func() bool {
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			return assert.NoError(t, err) && e.Metrics().Caches[0].Hits > 0
		}, 10*time.Second, time.Millisecond, user)
	}
}

// TestIdleConnectionsThatEnd: a server that closes idle connections fails no request.
func TestIdleConnectionsThatEnd(t *testing.T) {
	server := testworld.StartRedis(t)
	enginetest.Store(t, server.Addr, []string{"RPUSH", "rows", "7"})
	folder := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Model: model, Plans: folder, Redis: server.Addr})
		for range 5 {
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			require.NoError(t, err, model)
			before := e.Metrics().Redis[0].Reconnects
			enginetest.Store(t, server.Addr, []string{"CLIENT", "KILL", "TYPE", "normal"})
			if model == rankd.Reactor { // The other models look before they send.
				require.Eventually(t, func() bool {
					s := e.Metrics().Redis[0]
					return s.Ready == 0 || s.Reconnects > before
				}, 10*time.Second, time.Millisecond)
			}
		}
	}
}

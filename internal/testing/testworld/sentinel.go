package testworld

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MasterName is the name under which sentinels know the master of Sentinels.
const MasterName = "mymaster"

// downAfter is how long a server is silent before a sentinel considers it dead.
const downAfter = 500 * time.Millisecond

// Sentinels are some sentinels, a master and a replica that belong to one test. Any goroutine.
type Sentinels struct {
	*Cluster // the servers: Nodes[0] is the master at first, and Nodes[1] its replica; sentinels follow
	count    int
}

// StartRedisSentinels starts a pair and sentinels. It returns once each sentinel knows all
// others. quorum of them decide that a master is dead.
func StartRedisSentinels(t testing.TB, count, quorum int) *Sentinels {
	t.Helper()
	s := &Sentinels{Cluster: new(Cluster), count: count}
	add := func(args ...string) int {
		s.Nodes = append(s.Nodes, StartRedis(t, args...))
		return len(s.Nodes) - 1
	}
	add("--repl-diskless-sync-delay", "0")
	port := fmt.Sprint(s.Nodes[0].Port)
	add("--replicaof", "127.0.0.1 "+port)
	for range count {
		dir := t.TempDir()
		file := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]s %[3]d\nsentinel down-after-milliseconds %[1]s %[4]d\nsentinel failover-timeout %[1]s 5000\n",
			MasterName, port, quorum, downAfter.Milliseconds())
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		i := add(file, "--sentinel")
		s.Do(t, i, "SENTINEL", "SET", MasterName, "quorum", fmt.Sprint(quorum))
	}
	require.Eventually(t, func() bool {
		for i := 2; i < len(s.Nodes); i++ {
			info := s.Do(t, i, "INFO", "sentinel")
			if !strings.Contains(info, fmt.Sprint("status=ok,address=127.0.0.1:", port, ",slaves=1,sentinels=", count)) {
				return false
			}
		}
		return true
	}, formed, 20*time.Millisecond)
	return s
}

// Addr returns the address of the master, as users name it.
func (s *Sentinels) Addr() string {
	var addrs []string
	for _, n := range s.Nodes[2:] {
		addrs = append(addrs, n.Addr)
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + MasterName
}

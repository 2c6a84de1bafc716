package backend

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/process"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// Cluster is a Redis Cluster of a benchmark's own: masters on this machine, filled with data. Immutable once built; any goroutine.
type Cluster struct {
	Addr string // in the form of rankd.Options.Redis
	PIDs []int  // of its redis-servers

	folders []string
	masters []*process.Redis
}

// StartCluster starts so many masters of the redis-server at server, or on the PATH if that is empty, and fills them. Close ends them.
func StartCluster(ctx context.Context, server string, masters int, fill func(ctx context.Context, server string) error) (*Cluster, error) {
	c := new(Cluster)
	err := c.start(ctx, cmp.Or(server, "redis-server"), masters)
	if err == nil {
		err = fill(ctx, c.Addr)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, server string, masters int) error {
	addrs, nodes := make([]string, masters), make([]process.ClusterNode, masters)
	for i := range masters {
		folder, err := os.MkdirTemp("", "rankd-cluster-") // it writes its map there
		if err != nil {
			return err
		}
		c.folders = append(c.folders, folder)
		args, bus, err := process.ClusterArgs()
		if err != nil {
			return err
		}
		s, err := process.StartRedis(server, folder, args...)
		if err != nil {
			return err
		}
		c.masters, c.PIDs, addrs[i] = append(c.masters, s), append(c.PIDs, s.Process().Pid), s.Addr
		nodes[i] = process.ClusterNode{Port: strconv.Itoa(s.Port), Bus: bus, Do: func(words ...string) (string, error) { return command(ctx, s.Addr, words...) }}
	}
	c.Addr = "redis+cluster://" + strings.Join(addrs, ",")
	return process.FormCluster(nodes)
}

// command sends one command to a server and returns its reply as text.
func command(ctx context.Context, server string, words ...string) (text string, err error) {
	err = devredis.WithClient(ctx, server, func(client *blocking.Client) error {
		return exchange(client, [][]string{words}, func(_ int, r resp.Reply) { text = string(r.Bytes()) })
	})
	return text, err
}

// Close ends the servers.
func (c *Cluster) Close() {
	for _, s := range c.masters {
		s.Kill()
	}
	for _, folder := range c.folders {
		_ = os.RemoveAll(folder)
	}
}

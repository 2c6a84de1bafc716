package process

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// formed bounds how long the nodes of a new cluster take to know each other.
const formed = 30 * time.Second

// ClusterArgs returns arguments of StartRedis that make the server a node of a Redis Cluster, and the port on which it will talk to other nodes. Each
// node needs a working folder of its own.
func ClusterArgs() (args []string, bus int, err error) {
	if bus, err = freePort(); err != nil {
		return nil, 0, err
	}
	return []string{
		"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "1000",
		"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0",
	}, bus, nil
}

// ClusterNode is a master that is to be part of a new Redis Cluster. Immutable.
type ClusterNode struct {
	Port string // by which other nodes and clients know it
	Bus  int    // on which it talks to other nodes
	Do   func(words ...string) (reply string, err error)
}

// FormCluster makes a Redis Cluster of empty masters, and returns once each of them knows all. Master i of n has the slots from i*16384/n to
// (i+1)*16384/n-1.
func FormCluster(masters []ClusterNode) error {
	for i, node := range masters {
		_, slotsErr := node.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/len(masters)), strconv.Itoa((i+1)*slots/len(masters)-1))
		_, epochErr := node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if err := errors.Join(slotsErr, epochErr); err != nil {
			return err
		}
	}
	for _, node := range masters[1:] {
		if _, err := masters[0].Do("CLUSTER", "MEET", "127.0.0.1", node.Port, strconv.Itoa(node.Bus)); err != nil {
			return err
		}
	}
	for began := time.Now(); time.Since(began) < formed; time.Sleep(20 * time.Millisecond) {
		agreed := 0
		for _, node := range masters {
			info, err := node.Do("CLUSTER", "INFO")
			if err != nil {
				return err
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_slots_ok:", slots)) {
				agreed++
			}
		}
		if agreed == len(masters) {
			return nil
		}
	}
	return fmt.Errorf("the nodes of a Redis Cluster do not know each other after %v", formed)
}

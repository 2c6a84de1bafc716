package registry

import (
	"errors"
	"fmt"
)

// ReadFrom says which nodes of a Redis Cluster answer reads.
type ReadFrom string

// The nodes that answer reads: see resp.ReadFrom.
const (
	ReadMaster  ReadFrom = "" // "master" in a table
	ReadReplica ReadFrom = "replica"
	ReadNearest ReadFrom = "nearest"
)

// Replicas says whether those of a Redis Cluster are read. Immutable once built; any goroutine.
type Replicas struct {
	ReadFrom    ReadFrom
	MaxLagBytes int64 // how many bytes of writes one may lack that is read; 0: any number
}

// replicaLagLimit is the most that replica_max_lag_bytes may be.
const replicaLagLimit = 1 << 40

var (
	errReplicas    = errors.New("read_from or replica_max_lag_bytes " + needsCluster)
	errLagAlone    = errors.New("replica_max_lag_bytes needs read_from replica or nearest")
	errTrackedRead = fmt.Errorf("read_from replica and nearest exclude the caches %s and %s, which a master would tell of a change that a replica that is read may still lack; cache ttl is possible", CacheBroadcast, CacheTrack)
)

// check returns what is wrong with both fields together.
func (r Replicas) check() error {
	if r.MaxLagBytes > 0 && r.ReadFrom == ReadMaster {
		return errLagAlone
	}
	return nil
}

// Sentinel says how sentinels are reached that know a master. Immutable once built; any goroutine.
type Sentinel struct {
	Username string // empty means the default user
	Password Secret
	Plain    bool // they are asked without TLS, although the master has it
}

var (
	errSentinel     = errors.New("a setting for sentinels " + needsSentinel)
	errSentinelUser = errors.New("sentinel_username needs a sentinel_password, sentinel_password_file or sentinel_password_env")
)

// check returns what is wrong with the fields together.
func (s Sentinel) check() error {
	if s.Username != "" && s.Password.IsZero() {
		return errSentinelUser
	}
	return nil
}

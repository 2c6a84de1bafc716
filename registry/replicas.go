package registry

import (
	"errors"
	"fmt"
	"strconv"
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
	errReplicas    = errors.New("read_from and replica_max_lag_bytes need a Redis Cluster; replicas of a single master, or of one that sentinels know, are not read")
	errReadFrom    = errors.New("read_from must be master, replica or nearest")
	errReplicaLag  = fmt.Errorf("replica_max_lag_bytes must be 1 to %d", int64(replicaLagLimit))
	errLagAlone    = errors.New("replica_max_lag_bytes needs read_from replica or nearest")
	errTrackedRead = fmt.Errorf("read_from replica and nearest exclude the caches %s and %s, which a master would tell of a change that a replica that is read may still lack; cache ttl is possible", CacheBroadcast, CacheTrack)
)

// set takes a parameter of a URL.
func (r *Replicas) set(name, value string) (err error) {
	if name == "read_from" {
		r.ReadFrom, err = parseReadFrom(value)
		return err
	}
	if r.MaxLagBytes, err = strconv.ParseInt(value, 10, 64); err != nil || r.MaxLagBytes < 1 || r.MaxLagBytes > replicaLagLimit {
		return errReplicaLag
	}
	return nil
}

func parseReadFrom(text string) (ReadFrom, error) {
	switch from := ReadFrom(text); from {
	case ReadReplica, ReadNearest:
		return from, nil
	case "master", ReadMaster:
		return ReadMaster, nil
	}
	return ReadMaster, errReadFrom
}

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
	errSentinel      = errors.New("sentinel_username, sentinel_password, sentinel_password_file, sentinel_password_env and sentinel_tls need a master that sentinels know: redis+sentinel://")
	errSentinelTwice = errors.New("the password of the sentinels is given twice")
	errSentinelUser  = errors.New("sentinel_username needs a sentinel_password, sentinel_password_file or sentinel_password_env")
	errSentinelTLS   = errors.New("sentinel_tls must be true or false, and needs TLS to the master: rediss+sentinel://, or tls = true in a table")
)

// set takes a parameter of a URL. secure says that the master has TLS.
func (s *Sentinel) set(name, value string, secure bool) error {
	switch name {
	case "sentinel_username":
		s.Username = value
	case "sentinel_tls":
		if value != "true" && value != "false" {
			return errSentinelTLS
		}
		return s.setTLS(value == "true", secure)
	case "sentinel_password":
		return s.setPassword(NewSecret(value))
	case "sentinel_password_file":
		return s.setPassword(Secret{File: value})
	case "sentinel_password_env":
		return s.setPassword(Secret{Env: value})
	}
	return nil
}

// setPassword takes the password, which must not be set yet. The zero Secret changes nothing.
func (s *Sentinel) setPassword(password Secret) error {
	switch {
	case password.IsZero():
		return nil
	case !s.Password.IsZero():
		return errSentinelTwice
	}
	s.Password = password
	return nil
}

// setTLS takes whether they are asked through TLS. secure says that the master has it.
func (s *Sentinel) setTLS(through, secure bool) error {
	if !secure {
		return errSentinelTLS
	}
	s.Plain = !through
	return nil
}

// check returns what is wrong with the fields together.
func (s Sentinel) check() error {
	if s.Username != "" && s.Password.IsZero() {
		return errSentinelUser
	}
	return nil
}

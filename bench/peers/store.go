package peers

import (
	"context"
	"strings"
)

// Store reads from Redis. Any goroutine.
type Store interface {
	// Read sends a batch as one wave. Its commands leave together, and Read returns when all
	// are answered. A key that does not exist has no entries. A key of the wrong type is an
	// error of its command.
	Read(ctx context.Context, b *Batch)
	// Traffic counts what went to Redis since the store was opened.
	Traffic() Traffic
	// Close frees all that the store holds. Nothing may be in flight.
	Close()
}

// clusterOf returns the addresses of an address, "host:port", or of a Redis Cluster, "redis+cluster://host:port,host:port".
func clusterOf(addr string) (addrs []string, cluster bool) {
	addr, cluster = strings.CutPrefix(addr, "redis+cluster://")
	return strings.Split(addr, ","), cluster
}

// Lists are the lists prefix+id of some rows. One goroutine at a time.
type Lists struct {
	Prefix string
	Of     []int64 // the rows
	Fanout int     // entries to read of each list, at least 1

	// IDs are the ids in these lists, row after row, without entries that are not ids.
	IDs []int64
}

// Users are the users with these ids. One goroutine at a time.
type Users struct {
	IDs []int64

	Countries []Text // parallel to IDs
}

// Users are stored as hashes under this prefix, with this field.
const (
	userPrefix   = "user:"
	countryField = "country"
)

// wideWave is the number of commands from which a wave gets its own batch, however many other
// waves are in flight.
const wideWave = 32

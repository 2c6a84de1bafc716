package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// The defaults of Lists.
const (
	DefaultKey = "answers"
	DefaultTTL = 7 * 24 * time.Hour
)

// listsBytes is how many bytes of commands leave at once.
const listsBytes = 128 << 10

// keptVersions is how many versions stay: the one that plans read, and the one before it.
const keptVersions = 2

// clusterCopies is how many copies of the hash of shares a Redis Cluster has, in slots of their own: so each master has one, and a master that loses
// its data is noticed.
const clusterCopies = 256

// Lists says where answers go in Redis. Each user has a list of ids at Key:version:user. Key is a sorted set of versions. Its highest member is the
// pointer, which plans read. A version is added once it is whole, and all but the last two are then removed. Immutable.
type Lists struct {
	Redis string // as registry.ParseServer reads it
	Key   string
	// Version is the highest version that is there, or a higher number. Zero means the time of the start in milliseconds since 1970.
	Version int64
	TTL     time.Duration // of each list, and of the pointer. Zero means DefaultTTL.
}

// lists are Lists under way. One goroutine.
type lists struct {
	Lists
	id      string // of the job
	running *running
	client  devredis.Caller
	ctx     context.Context // of the job
	batch   resp.Batch
	key     []byte
	ids     []string // of the answer
	err     error    // of the first command that failed: no other one is sent
}

func (l *lists) ttl() int64 { return int64(cmp.Or(l.TTL, DefaultTTL) / time.Second) }

// begin makes the version, unless it has begun.
func (l *lists) begin() error {
	versions, err := l.versions(0)
	if err != nil {
		return err
	}
	if len(versions) > 0 && versions[0] > l.Version {
		return fmt.Errorf("version %d of %s is below the one that is there, %d", l.Version, l.Key, versions[0])
	}
	var state, other string
	l.cmd("HGET", l.shares(l.Version, 0), l.running.share())
	l.cmd("HGET", l.shares(l.Version, 0), l.jobField())
	if err := l.flush(func(i int, r resp.Reply) error { *[]*string{&state, &other}[i] = string(r.Bytes()); return nil }); err != nil {
		return err
	}
	if state == shareBegun && other != l.id && !l.running.Restart {
		return fmt.Errorf("share %s of version %d of %s is that of another batch, %s, which has not ended: go on with its checkpoints, name another --out_version, or give --restart",
			l.running.share(), l.Version, l.Key, other)
	}
	for i := range l.copies() {
		l.cmd("HSET", l.shares(l.Version, i), l.running.share(), shareBegun, l.jobField(), l.id)
		l.cmd("EXPIRE", l.shares(l.Version, i), strconv.FormatInt(l.ttl(), 10))
	}
	return l.flush(nil)
}

// The states of a share, in the hash of shares of a version. A whole one has the numbers of its users, and of those without rows, behind it.
const (
	shareBegun = "0"
	shareWhole = "1"
)

// jobField is the field that says which job writes the share. Nothing but the begin of a job sets it: if it is gone, so are lists.
func (l *lists) jobField() string { return "job:" + l.running.share() }

// shares returns the key of a copy of the hash of shares. The first copy counts.
func (l *lists) shares(version int64, copy int) string {
	key := fmt.Sprintf("%s:shares:%d", l.Key, version)
	if copy > 0 {
		key += ":" + strconv.Itoa(copy)
	}
	return key
}

// copies returns how many copies of the hash of shares there are.
func (l *lists) copies() int {
	if server, err := registry.ParseServer(l.Redis); err == nil && server.Cluster {
		return clusterCopies
	}
	return 1
}

// there checks that Redis still has what the job has written before. A version that it has lost is not the one that plans read.
func (l *lists) there() error {
	lost, other := false, ""
	for i := range l.copies() {
		l.cmd("HGET", l.shares(l.Version, i), l.jobField())
	}
	err := l.flush(func(_ int, r resp.Reply) error {
		switch id := string(r.Bytes()); id {
		case "":
			lost = true
		case l.id:
		default:
			other = id
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case other != "":
		return fmt.Errorf("share %s of version %d of %s is that of another batch now: %s", l.running.share(), l.Version, l.Key, other)
	case lost:
		l.cmd("ZREM", l.Key, strconv.FormatInt(l.Version, 10))
		return errors.Join(fmt.Errorf("lists of version %d of %s are lost in Redis; --restart ranks all again", l.Version, l.Key), l.flush(nil))
	}
	return nil
}

// discard removes the lists of a job that will not go on, unless plans read them. They no longer count as there first.
func (l *lists) discard(version int64, id string) error {
	versions, err := l.versions(0)
	if err != nil || slices.Contains(versions, version) {
		return err
	}
	l.cmd("HGET", l.shares(version, 0), l.jobField())
	own := false
	if err := l.flush(func(_ int, r resp.Reply) error { own = string(r.Bytes()) == id; return nil }); err != nil || !own {
		return err
	}
	for i := range l.copies() {
		l.cmd("HDEL", l.shares(version, i), l.running.share(), l.jobField())
	}
	if err := l.flush(nil); err != nil {
		return err
	}
	return l.remove(version, func(user string) bool { return l.running.shareOf(user) == l.running.Shard })
}

// versions returns the whole versions except some, the highest first.
func (l *lists) versions(without int) (versions []int64, err error) {
	l.cmd("ZREVRANGE", l.Key, strconv.Itoa(without), "-1")
	err = l.flush(func(_ int, r resp.Reply) error {
		for v := range r.All() {
			n, err := strconv.ParseInt(string(v.Bytes()), 10, 64)
			if err != nil {
				return fmt.Errorf("%s has %q, which is not a version", l.Key, v.Bytes())
			}
			versions = append(versions, n)
		}
		return nil
	})
	return versions, err
}

func (l *lists) cmd(words ...string) { l.batch.Cmd(words...) }

// flush sends the commands so far, and hands over their replies.
func (l *lists) flush(use func(i int, r resp.Reply) error) error {
	n := l.batch.Len()
	if n == 0 || l.err != nil {
		return l.err
	}
	l.running.asked.Add(uint64(n))
	l.err = l.client.Do(&l.batch, 0, func(replies resp.Replies) error {
		for i, r := range replies.All() {
			err := r.Err()
			if err == nil && use != nil {
				err = use(i, r)
			}
			if err != nil {
				return fmt.Errorf("answers at %s: %w", l.Key, err)
			}
		}
		return nil
	})
	l.batch.Reset()
	return l.err
}

// encode takes the ids of an answer.
func (l *lists) encode(a *rankd.Answer) {
	l.ids = l.ids[:0]
	for c := range a.Candidates() {
		l.ids = append(l.ids, c.IDText())
	}
}

// write replaces the list of a user. A user that failed has none.
func (l *lists) write(p *Entry) error {
	user := userOf(&p.Request)
	if user == "0" { // The document has no user.
		return nil
	}
	l.key = append(l.appendVersion(l.key[:0], l.Version), user...)
	l.batch.Begin(2)
	l.batch.ArgString("DEL")
	l.batch.ArgBytes(l.key)
	if p.Err == nil && len(l.ids) > 0 {
		l.batch.Begin(2 + len(l.ids))
		l.batch.ArgString("RPUSH")
		l.batch.ArgBytes(l.key)
		for _, id := range l.ids {
			l.batch.ArgString(id)
		}
		l.batch.Begin(3)
		l.batch.ArgString("EXPIRE")
		l.batch.ArgBytes(l.key)
		l.batch.ArgInt(l.ttl())
	}
	if l.batch.Size() >= listsBytes {
		return l.flush(nil)
	}
	return nil
}

// appendVersion appends how the keys of a version begin.
func (l *lists) appendVersion(dst []byte, version int64) []byte {
	return append(strconv.AppendInt(append(append(dst, l.Key...), ':'), version, 10), ':')
}

// swing moves the pointer to the version once all its shares are whole. It then removes older versions.
func (l *lists) swing() error {
	sum := &l.running.Summary
	if alone := l.running.Shards == 1; alone && sum.Failed == sum.Users {
		return fmt.Errorf("%w: all %d failed; %s stays at its version", ErrTooMany, sum.Users, l.Key)
	}
	if err := l.there(); err != nil {
		return err
	}
	l.cmd("HSET", l.shares(l.Version, 0), l.running.share(), fmt.Sprintf("%s %d %d", shareWhole, sum.Users, sum.Empty))
	whole, users, empty, err := l.wholeShares(l.Version)
	if err != nil || whole < l.running.Shards {
		return err
	}
	before, err := l.versions(0)
	if err != nil {
		return err
	}
	if before = slices.DeleteFunc(before, func(v int64) bool { return v == l.Version }); len(before) > 0 {
		_, usersBefore, emptyBefore, err := l.wholeShares(before[0])
		if err != nil {
			return err
		}
		if usersBefore > 0 && empty*usersBefore > 2*emptyBefore*users {
			l.running.Warn(fmt.Sprintf("%d of %d users have no rows; in version %d it was %d of %d", empty, users, before[0], emptyBefore, usersBefore))
		}
	}
	version := strconv.FormatInt(l.Version, 10)
	l.cmd("ZADD", l.Key, version, version)
	l.cmd("EXPIRE", l.Key, strconv.FormatInt(l.ttl(), 10))
	if err := errors.Join(l.flush(nil), l.there()); err != nil { // Redis may have lost the lists just before.
		return err
	}
	sum.Current = true
	old, err := l.versions(keptVersions)
	for _, v := range old {
		if err == nil {
			err = l.remove(v, func(string) bool { return true })
		}
		if err == nil {
			l.cmd("ZREM", l.Key, strconv.FormatInt(v, 10))
			for i := range l.copies() {
				l.cmd("DEL", l.shares(v, i))
			}
			err = l.flush(nil)
		}
	}
	return err
}

// wholeShares returns how many shares of a version are whole, and their users.
func (l *lists) wholeShares(version int64) (whole, users, empty int, err error) {
	l.cmd("HVALS", l.shares(version, 0))
	err = l.flush(func(_ int, r resp.Reply) error {
		for text := range r.All() {
			state, counts, _ := strings.Cut(string(text.Bytes()), " ")
			if state == shareWhole {
				whole++
				n, none, _ := strings.Cut(counts, " ")
				more, _ := strconv.Atoi(n) // A version of an earlier release has no counts.
				lacking, _ := strconv.Atoi(none)
				users, empty = users+more, empty+lacking
			}
		}
		return nil
	})
	return whole, users, empty, err
}

// remove removes the lists of some users of a version.
func (l *lists) remove(version int64, of func(user string) bool) error {
	prefix := string(l.appendVersion(nil, version))
	err := devredis.EachMaster(l.ctx, l.Redis, func(c *blocking.Client) error {
		return devredis.Scan(c, globText(prefix)+"*", scanCount, func(keys resp.Reply) (bool, error) {
			for key := range keys.All() {
				if key := string(key.Bytes()); of(strings.TrimPrefix(key, prefix)) {
					l.cmd("UNLINK", key)
				}
			}
			l.running.asked.Add(1)
			err := l.flush(nil)
			l.running.pace.hold(l.ctx)
			return l.ctx.Err() == nil, errors.Join(err, context.Cause(l.ctx))
		})
	})
	if errors.Is(err, devredis.ErrSlotsMove) {
		err = nil // What was missed goes by its time.
	}
	return err
}

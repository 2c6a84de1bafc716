package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// The defaults of Lists.
const (
	DefaultKey       = "answers"
	DefaultTTL       = 7 * 24 * time.Hour
	DefaultMaxFailed = 10
)

// listsBytes is how many bytes of commands leave at once.
const listsBytes = 128 << 10

// keptVersions is how many versions stay: the one that plans read, and the one before it.
const keptVersions = 2

// Lists says where answers go in Redis. Each user has a list of ids at Key:version:user. Key is a sorted set of versions. Its highest member is the
// pointer, which plans read. A version is added once it is whole, and all but the last two are then removed. Immutable.
type Lists struct {
	Redis string // as registry.ParseServer reads it
	Key   string
	// Version is the highest version that is there, or a higher number. Zero means the time of the start in milliseconds since 1970.
	Version int64
	TTL     time.Duration // of each list, and of the pointer. Zero means DefaultTTL.
	// MaxFailed is how many in a hundred users may fail. If more fail, the pointer does not move.
	MaxFailed int
}

// ErrTooManyFailed says that the pointer has not moved.
var ErrTooManyFailed = errors.New("too many users failed")

// lists are Lists under way. One goroutine.
type lists struct {
	Lists
	running *running
	client  devredis.Caller
	ctx     context.Context // of the job
	batch   resp.Batch
	key     []byte
	ids     []string // of one user
	err     error
}

func (l *lists) ttl() int64 { return int64(cmp.Or(l.TTL, DefaultTTL) / time.Second) }

// begin returns the version of a job that begins.
func (l *lists) begin() (int64, error) {
	l.Version = cmp.Or(l.Version, time.Now().UnixMilli())
	versions, err := l.versions(0)
	if err == nil && len(versions) > 0 && versions[0] > l.Version {
		err = fmt.Errorf("version %d of %s is below the one that is there, %d", l.Version, l.Key, versions[0])
	}
	if err == nil {
		err = l.mark(shareBegun)
	}
	return l.Version, err
}

// The states of a share, in the hash of shares of a version.
const (
	shareBegun = "0"
	shareWhole = "1"
)

// shares returns the key of the hash of shares.
func (l *lists) shares(version int64) string { return fmt.Sprintf("%s:shares:%d", l.Key, version) }

func (l *lists) share() string { return fmt.Sprintf("%d/%d", l.running.Shard, l.running.Shards) }

// mark sets the state of the share.
func (l *lists) mark(state string) error {
	l.cmd("HSET", l.shares(l.Version), l.share(), state)
	l.cmd("EXPIRE", l.shares(l.Version), strconv.FormatInt(l.ttl(), 10))
	return l.flush(nil)
}

// goOn checks that Redis still has what a resumed job has written before.
func (l *lists) goOn() error {
	l.cmd("HEXISTS", l.shares(l.Version), l.share())
	return l.flush(func(_ int, r resp.Reply) error {
		if r.Int() == 0 {
			return fmt.Errorf("the lists of version %d have gone; remove %s to rank all again", l.Version, l.running.folder)
		}
		return nil
	})
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
	err := l.client.Do(&l.batch, 0, func(replies resp.Replies) error {
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
	return err
}

// open begins a part. Some of its lists may be there already.
func (l *lists) open() error { return nil }

func (l *lists) failure() error { return l.err }

// write replaces the list of a user.
func (l *lists) write(p *Entry) error {
	l.ids = l.ids[:0]
	err := l.running.Engine.Intake().Contain(p.Answer.RequestID, func() {
		for c := range p.Answer.Candidates() {
			l.ids = append(l.ids, c.IDText())
		}
	})
	if err != nil {
		return err
	}
	l.key = append(l.appendVersion(l.key[:0], l.Version), userOf(&p.Request)...)
	l.batch.Begin(2)
	l.batch.ArgString("DEL")
	l.batch.ArgBytes(l.key)
	if n := len(l.ids); n > 0 {
		l.batch.Begin(2 + n)
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
		l.err = l.flush(nil)
	}
	return nil
}

// appendVersion appends how the keys of a version begin.
func (l *lists) appendVersion(dst []byte, version int64) []byte {
	return append(strconv.AppendInt(append(append(dst, l.Key...), ':'), version, 10), ':')
}

// keep returns once Redis has all lists of the part.
func (l *lists) keep() error {
	l.err = l.flush(nil)
	return l.err
}

// drop forgets the commands that were not sent.
func (l *lists) drop() { l.batch.Reset() }

// swing moves the pointer to the version once all its shares are whole. It then removes older versions.
func (l *lists) swing() error {
	sum := &l.running.sum
	sum.Version = l.Version
	if alone := l.running.Shards == 1; sum.Failed*100 > l.MaxFailed*sum.Users || alone && sum.Failed == sum.Users {
		return fmt.Errorf("%w: %d of %d; %s stays at its version", ErrTooManyFailed, sum.Failed, sum.Users, l.Key)
	}
	if err := l.mark(shareWhole); err != nil {
		return err
	}
	whole := 0
	l.cmd("HVALS", l.shares(l.Version))
	err := l.flush(func(_ int, r resp.Reply) error {
		for state := range r.All() {
			if string(state.Bytes()) == shareWhole {
				whole++
			}
		}
		return nil
	})
	if err != nil || whole < l.running.Shards {
		return err
	}
	version, ttl := strconv.FormatInt(l.Version, 10), strconv.FormatInt(l.ttl(), 10)
	l.cmd("ZADD", l.Key, version, version)
	l.cmd("EXPIRE", l.Key, ttl)
	if err := l.flush(nil); err != nil {
		return err
	}
	sum.Current = true
	old, err := l.versions(keptVersions)
	for _, v := range old {
		if err == nil {
			err = l.remove(v)
		}
	}
	return err
}

// remove removes the lists of a version, and then the version.
func (l *lists) remove(version int64) error {
	pattern := globText(string(l.appendVersion(nil, version))) + "*"
	err := devredis.EachMaster(l.ctx, l.Redis, func(c *blocking.Client) error {
		return devredis.Scan(c, pattern, scanCount, func(keys resp.Reply) (bool, error) {
			for key := range keys.All() {
				l.cmd("UNLINK", string(key.Bytes()))
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
	if err == nil {
		l.cmd("ZREM", l.Key, strconv.FormatInt(version, 10))
		l.cmd("DEL", l.shares(version))
		err = l.flush(nil)
	}
	return err
}

package worker

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

func TestJudge(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	oks := []time.Time{{}, at(10), at(20), at(30)}
	for _, c := range []struct {
		name       string
		version    int64
		began, now int
		age        int // of a stale answer in ms; -1: it is not stale
	}{
		{"the newest", 3, 35, 36, -1},
		{"one behind", 2, 35, 36, 6},
		{"two behind, the age is that of the first that it lacks", 1, 35, 36, 16},
		{"the OK came after the request began", 2, 29, 40, -1},
		{"the OK came as it began", 2, 30, 40, -1},
		{"older than what it could see", 1, 29, 40, 20},
		{"a version whose OK is not read yet", 4, 35, 36, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ledger{ages: load.NewHistogram()}
			l.oks[1] = oks
			require.NoError(t, l.judge(1, c.version, at(c.began), at(c.now)))
			assert.EqualValues(t, 1, l.answers)
			if c.age < 0 {
				assert.Zero(t, l.stale)
				return
			}
			assert.EqualValues(t, 1, l.stale)
			assert.InEpsilon(t, float64(time.Duration(c.age)*time.Millisecond), float64(l.ages.Max()), 0.01)
		})
	}
	l := ledger{}
	l.oks[1] = oks
	for _, version := range []int64{-1, 5} {
		assert.ErrorContains(t, l.judge(1, version, at(0), at(1)), fmt.Sprintf("version %d of user 2 was never written", version))
	}
}

// kept is a target that keeps values, and reads them again when they are too old.
type kept struct {
	redis  *miniredis.Miniredis
	client *blocking.Client
	age    time.Duration
	fails  error
	ask    chan func(values map[string]value) // one at a time
}

type value struct {
	version int64
	read    time.Time
}

func (k *kept) VersionKey(user int64) string { return "v:" + strconv.FormatInt(user, 10) }

func (k *kept) ReadVersion(user int64, done func(int64, error)) {
	k.ask <- func(values map[string]value) {
		key := k.VersionKey(user)
		if v, ok := values[key]; !ok || time.Since(v.read) > k.age {
			version, err := k.read(key)
			if err != nil {
				done(0, err)
				return
			}
			values[key] = value{version, time.Now()}
		}
		done(values[key].version, nil)
	}
}

func (k *kept) read(key string) (version int64, err error) {
	var b resp.Batch
	b.Cmd("LINDEX", key, "0")
	err = k.client.Do(&b, 0, func(replies resp.Replies) error {
		var ok bool
		if version, ok = replies.At(0).ParseInt(); !ok {
			return errors.Join(errors.New("no version"), replies.At(0).Err())
		}
		return nil
	})
	return version, errors.Join(err, k.fails)
}

// start has the target answer until the test ends.
func (k *kept) start(t *testing.T) {
	k.redis, k.ask = miniredis.RunT(t), make(chan func(map[string]value))
	k.client = blocking.NewClient(clock.NewReal(), resp.Options{Addr: k.redis.Addr()})
	go k.run()
	t.Cleanup(func() { close(k.ask) })
}

func (k *kept) run() {
	defer k.client.Close()
	values := make(map[string]value)
	for f := range k.ask {
		f(values)
	}
}

// A target that always reads is never stale. A target that keeps values is stale for as long as
// it keeps them, and no longer.
func TestProbe(t *testing.T) {
	const age = 30 * time.Millisecond
	for _, c := range []struct {
		name string
		age  time.Duration
	}{{"always reads", 0}, {"keeps", age}} {
		t.Run(c.name, func(t *testing.T) {
			k := &kept{age: c.age}
			k.start(t)
			p := BeginProbe(t.Context(), k.redis.Addr(), k)
			require.Eventually(t, func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.ledger.answers > 1000 && (c.age == 0 || p.ledger.stale > 100)
			}, time.Minute, time.Millisecond)
			seen, err := p.End()
			require.NoError(t, err)
			if c.age == 0 {
				assert.Zero(t, seen.Stale)
			} else {
				assert.Greater(t, seen.Ages.ValueAtPercentile(50), int64(age/20), "half of the time that values are kept, and a busy machine")
			}
			assert.Empty(t, k.redis.Keys(), "nothing is left")
		})
	}
}

func TestAProbeThatFails(t *testing.T) {
	k := &kept{fails: errors.New("no luck")}
	k.start(t)
	p := BeginProbe(t.Context(), k.redis.Addr(), k)
	<-p.ctx.Done()
	_, err := p.End()
	assert.ErrorContains(t, err, "the age of answers: no luck")
	addr := k.redis.Addr()
	k.redis.Close()
	for _, server := range []string{addr, "no address"} {
		_, err = BeginProbe(t.Context(), server, k).End()
		assert.Error(t, err)
	}
}

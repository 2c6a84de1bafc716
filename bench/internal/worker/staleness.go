package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

const (
	versions   = 4                      // users, with a version each
	readers    = 4                      // requests in flight
	writePause = 5 * time.Millisecond   // between two versions, of any user
	readPause  = 100 * time.Microsecond // between two requests of a reader: it leaves the target to its load
)

// A Probe measures how old the values are that a target serves from memory: how long after the writer of a newer value had its OK. One goroutine.
//
//	writer ──LSET version──▶ Redis        notes when each version had its OK
//	reader ──request──▶ target ──answer──▶ version: was a newer one OK before the request began?
//
// The version of a user is a key of its own, which the target reads as its plan reads lists. It counts up by one. An answer is stale if the
// next version had its OK before the request began. Its age is the time from that OK to the answer, so the time that the answer took is
// part of it. An answer without an OK before the request is not stale, whatever it says.
type Probe struct {
	target  load.Versioned
	ctx     context.Context
	cancel  context.CancelFunc
	readers sync.WaitGroup
	writer  sync.WaitGroup
	failed  error // of the writer

	mu     sync.Mutex
	ledger ledger
	broken error // the first of the readers
}

// ledger knows when versions had their OK, and judges answers. One goroutine at a time.
type ledger struct {
	oks            [versions][]time.Time // by user and version; version 0 was there before
	answers, stale int64
	ages           load.Histogram // of the stale ones
}

// BeginProbe begins to write versions to the server, in the form of rankd.Options.Redis, and to read them through the target. It returns when
// the first versions are written.
func BeginProbe(ctx context.Context, server string, target load.Versioned) *Probe {
	p := &Probe{target: target, ledger: ledger{ages: load.NewHistogram()}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	began := make(chan struct{})
	ready := sync.OnceFunc(func() { close(began) })
	p.readers.Add(readers)
	p.writer.Go(func() {
		defer ready() // without a server there are no first versions
		p.failed = devredis.WithClient(context.WithoutCancel(ctx), server, func(client *blocking.Client) error {
			err := p.forget(client)
			for user := range versions {
				p.ledger.oks[user] = []time.Time{{}}
				err = errors.Join(err, do(client, "RPUSH", p.key(user), "0"))
			}
			ready()
			if err == nil {
				err = p.write(client)
			}
			p.cancel()
			p.readers.Wait() // A reader that finds no version fails.
			return errors.Join(err, p.forget(client))
		})
	})
	<-began
	for range readers {
		go p.read()
	}
	return p
}

// End ends the writer and the readers, and returns what was seen.
func (p *Probe) End() (*Ages, error) {
	p.cancel()
	p.readers.Wait()
	p.writer.Wait()
	if err := errors.Join(p.failed, p.broken); err != nil {
		return nil, fmt.Errorf("the age of answers: %w", err)
	}
	return &Ages{Answers: p.ledger.answers, Stale: p.ledger.stale, Ages: p.ledger.ages}, nil
}

// key is the key of the version of a user, who counts from 0.
func (p *Probe) key(user int) string { return p.target.VersionKey(int64(user + 1)) }

// forget deletes all versions.
func (p *Probe) forget(client *blocking.Client) (err error) {
	for user := range versions {
		err = errors.Join(err, do(client, "DEL", p.key(user)))
	}
	return err
}

func (p *Probe) write(client *blocking.Client) error {
	for {
		select {
		case <-p.ctx.Done():
			return nil
		case <-time.After(writePause):
		}
		user := rand.IntN(versions)
		p.mu.Lock()
		version := len(p.ledger.oks[user])
		p.mu.Unlock()
		if err := do(client, "LSET", p.key(user), "0", strconv.Itoa(version)); err != nil {
			return err
		}
		now := time.Now()
		p.mu.Lock()
		p.ledger.oks[user] = append(p.ledger.oks[user], now)
		p.mu.Unlock()
	}
}

func (p *Probe) read() {
	defer p.readers.Done()
	type answer struct {
		version int64
		err     error
	}
	answers := make(chan answer, 1)
	for p.ctx.Err() == nil {
		user, began := rand.IntN(versions), time.Now()
		p.target.ReadVersion(int64(user+1), func(version int64, err error) { answers <- answer{version, err} })
		a := <-answers
		now := time.Now()
		p.mu.Lock()
		err := a.err
		if err == nil {
			err = p.ledger.judge(user, a.version, began, now)
		}
		if p.broken == nil && err != nil {
			p.broken = err
			p.cancel()
		}
		p.mu.Unlock()
		time.Sleep(readPause)
	}
}

// judge counts the answer to a request for the version of a user.
func (l *ledger) judge(user int, version int64, began, now time.Time) error {
	// The writer may not have read the OK of the version that was served.
	if version < 0 || version > int64(len(l.oks[user])) {
		return fmt.Errorf("version %d of user %d was never written", version, user+1)
	}
	l.answers++
	if newer := version + 1; newer < int64(len(l.oks[user])) && l.oks[user][newer].Before(began) {
		l.stale++
		return l.ages.RecordValue(int64(min(now.Sub(l.oks[user][newer]), time.Minute)))
	}
	return nil
}

func do(client *blocking.Client, command ...string) error {
	var b resp.Batch
	b.Cmd(command...)
	return client.Do(&b, 0, func(replies resp.Replies) error { return replies.At(0).Err() })
}

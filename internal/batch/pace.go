package batch

import (
	"context"
	"time"
)

// paceEvery is how many users begin between two looks at the number of commands sent.
const paceEvery = 16

// paceCredit is how much of the pace may be made up for after a pause.
const paceCredit = 100 * time.Millisecond

// A pace bounds the commands per second of all endpoints together. It holds up further users once the ones under way have sent
// too many, so the rate may exceed the bound for a moment. One goroutine.
type pace struct {
	sent      func() uint64 // how many commands, so far
	perSecond int           // 0: no bound
	users     int
	counted   uint64    // of sent
	due       time.Time // until when the commands so far take their time
}

// wait holds up the next user if the pace demands it.
func (p *pace) wait(ctx context.Context) {
	if p.users++; p.users%paceEvery == 1 {
		p.hold(ctx)
	}
}

// hold waits until the commands sent so far fit the pace.
func (p *pace) hold(ctx context.Context) {
	if p.perSecond == 0 {
		return
	}
	sent := p.sent()
	now := time.Now()
	if earliest := now.Add(-paceCredit); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(time.Duration(sent-p.counted) * time.Second / time.Duration(p.perSecond))
	p.counted = sent
	if wait := p.due.Sub(now); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

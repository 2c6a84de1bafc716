package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/task/builtin"
	"github.com/rankd/rankd/trace"
)

// The tasks of the simulation are the built-in ones, with busy_cpu in virtual time, and some
// that misbehave. Each body is watched: see watch.

var (
	errSimFails = errors.New("this task fails")
	errThrifty  = errors.New(openPrefix + "nothing was spent")
)

// simTasks returns the registry of all tasks. The bodies belong to the lab's present world.
func simTasks(lab *simLab) (*task.Catalog, error) {
	var specs []task.Spec
	for _, spec := range builtin.Specs() {
		if spec.Op == "test::busy_cpu" {
			spec.Run = func(c *task.Ctx) (rowset.RowSet, error) {
				for range c.Node.Params.Int("busy_wait_ms") {
					lab.burn(time.Millisecond)
					if c.Cancelled() {
						return rowset.RowSet{}, task.ErrCancelled
					}
				}
				return c.Inputs[0], nil
			}
		}
		if spec.Op == "test::fixed_source" {
			makeRows := spec.Run
			spec.Writes = task.Columns(simInt, simBool, simSet)
			spec.Run = func(c *task.Ctx) (rowset.RowSet, error) {
				rows, err := makeRows(c)
				if err != nil {
					return rowset.RowSet{}, err
				}
				return withTypes(rows), nil
			}
		}
		specs = append(specs, spec)
	}
	passThrough := func(op string, onLoop bool, body task.Body, params ...plan.ParamSchema) {
		spec := task.Spec{Op: op, Doc: op, Inputs: 1, Output: task.PassThrough, Run: body, Params: params, Forgets: true}
		if onLoop {
			spec.Place = task.OnLoop
		} else {
			spec.Inline = true
		}
		specs = append(specs, spec)
	}
	panics := func(c *task.Ctx) (rowset.RowSet, error) { panic("in node " + c.Node.ID) }
	fails := func(*task.Ctx) (rowset.RowSet, error) { return rowset.RowSet{}, errSimFails }
	wrong := func(c *task.Ctx) (rowset.RowSet, error) {
		return rowset.Dense(&rowset.Batch{IDs: make([]int64, c.Inputs[0].Len()+1)}), nil
	}
	for _, on := range []string{"pool", "loop"} {
		passThrough("sim::panics_on_"+on, on == "loop", panics)
		passThrough("sim::fails_on_"+on, on == "loop", fails)
		passThrough("sim::wrong_on_"+on, on == "loop", wrong)
	}
	// stubborn ignores that its node was given up.
	passThrough("sim::stubborn", false, func(c *task.Ctx) (rowset.RowSet, error) {
		lab.burn(lab.world.between(0, 30*time.Millisecond))
		return c.Inputs[0], nil
	})
	// chatty awaits again and again, by turns Redis and the timer. deaf does the same but
	// ignores every error, so it goes on after its node has timed out.
	endpoint := plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true}
	for _, deaf := range []bool{false, true} {
		passThrough("sim::"+map[bool]string{false: "chatty", true: "deaf"}[deaf], true,
			func(c *task.Ctx) (rowset.RowSet, error) {
				redis := c.Redis(c.Node.Endpoint)
				for i := range int64(3) {
					b := redis.NewBatch()
					for k := range i + 1 {
						b.Cmd("HGETALL", fmt.Sprintf("user:%d", c.UserID+100*i+k))
					}
					if _, err := redis.Send(b); err != nil && !deaf {
						return rowset.RowSet{}, err
					}
					if err := c.Sleep(time.Duration(i) * time.Millisecond); err != nil && !deaf {
						return rowset.RowSet{}, err
					}
				}
				return c.Inputs[0], nil
			}, endpoint)
	}
	// persistent retries until it is answered, with growing sleeps in between. It ends when a
	// sleep says that its node was given up, unless it ignores that.
	passThrough("sim::persistent", true, func(c *task.Ctx) (out rowset.RowSet, err error) {
		redis := c.Redis(c.Node.Endpoint)
		for attempt := range 12 {
			if attempt > 0 {
				lab.world.retries++
				if err := c.Sleep(time.Millisecond << attempt); err != nil && !c.Node.Params.Bool("deaf") {
					return rowset.RowSet{}, err
				}
			}
			b := redis.NewBatch()
			b.Cmd("HGETALL", fmt.Sprintf("user:%d", c.UserID))
			if _, err = redis.Send(b); err == nil {
				return c.Inputs[0], nil
			}
		}
		return rowset.RowSet{}, err
	}, endpoint, plan.ParamSchema{Name: "deaf", Type: plan.Bool})
	// popular sends commands that others send, too. At times it gives a call up before the call
	// has left.
	passThrough("sim::popular", true, func(c *task.Ctx) (rowset.RowSet, error) {
		redis := c.Redis(c.Node.Endpoint)
		for round := range c.UserID % 3 {
			b := redis.NewBatch()
			for k := range 1 + (c.UserID+round)%4 {
				b.Cmd("HGETALL", fmt.Sprintf("user:%d", 1000+(c.UserID*k+round)%5))
			}
			parts := redis.Parts(b)
			if (c.UserID+round)%5 == 0 {
				lab.world.givenUp++
				continue
			}
			for parts.Next() {
			}
			if err := parts.Err(); err != nil {
				return rowset.RowSet{}, err
			}
		}
		return c.Inputs[0], nil
	}, endpoint)
	// service asks a service for a number that depends on its input.
	passThrough("sim::service", true, func(c *task.Ctx) (rowset.RowSet, error) {
		ep, _ := c.Registry.Endpoint("ep_0003")
		asked, answered := 0, 0
		waits := true
		defer func() { waits = false }()
		request := func(dst []byte) ([]byte, error) {
			lab.world.check(waits && asked == 0, "node %s of request %d: its request is written %d times, waits: %v", c.Node.ID, c.UserID, asked+1, waits)
			asked++
			return strconv.AppendUint(dst, digestOf(c.Inputs[0]), 10), nil
		}
		answer := func(body []byte) error {
			lab.world.check(waits && answered == 0, "node %s of request %d: its answer comes %d times, waits: %v", c.Node.ID, c.UserID, answered+1, waits)
			answered++
			if want := simScore(strconv.AppendUint(nil, digestOf(c.Inputs[0]), 10)); !bytes.Equal(body, want) {
				return remote.Malformedf("the answer is %q, and should be %q", body, want)
			}
			return nil
		}
		err := c.Remote(ep).Exchange(request, answer)
		lab.world.check(err != nil || answered == 1, "node %s of request %d: an exchange succeeded without an answer", c.Node.ID, c.UserID)
		return c.Inputs[0], err
	})
	// open asks, and goes on without an answer.
	passThrough("sim::open", true, func(c *task.Ctx) (rowset.RowSet, error) {
		key := fmt.Sprintf("user:%d", c.UserID%40)
		if _, err := c.Redis(c.Node.Endpoint).Do("HGETALL", key); c.Cancelled() {
			return rowset.RowSet{}, err
		} else if err != nil {
			c.FailOpen(fmt.Errorf(openPrefix+"%s: %w", key, err))
		}
		return c.Inputs[0], nil
	}, endpoint)
	// thrifty fails open, too, wherever it runs.
	passThrough("sim::thrifty", false, func(c *task.Ctx) (rowset.RowSet, error) {
		if c.UserID%3 == 0 {
			c.FailOpen(errThrifty)
		}
		return c.Inputs[0], nil
	})
	// watchful heeds only its cancellation. It alternates between sleeps and waits for
	// functions.
	passThrough("sim::watchful", true, func(c *task.Ctx) (rowset.RowSet, error) {
		isClosed := func(done <-chan struct{}) bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		done := c.Context().Done()
		env := tasks.Env(c)
		cancelled := env.Cancellation.Done()
		for i := range 10 {
			if i%2 == 0 {
				_ = c.Sleep(3 * time.Millisecond)
			} else {
				lab.awaitsFunction(c, c.UserID+int64(i))
			}
			closed := isClosed(done)
			lab.world.check(isClosed(cancelled) == c.Cancelled(), "node %s of request %d: cancelled is closed: %v, it is: %v",
				c.Node.ID, c.UserID, isClosed(cancelled), c.Cancelled())
			due := c.Cancelled() || env.Request.Caller != nil && env.Request.Caller.Err() != nil
			lab.world.check(closed == due && (c.Context().Err() != nil) == closed,
				"node %s of request %d: done is closed: %v, cancelled or its caller gone: %v", c.Node.ID, c.UserID, closed, due)
			if closed {
				return rowset.RowSet{}, task.ErrCancelled
			}
		}
		return c.Inputs[0], nil
	})
	for i := range specs {
		lab.watch(&specs[i])
	}
	return task.NewCatalog(specs...)
}

var errSimFunction = errors.New("this function fails")

// awaitsFunction waits for a function that fails or succeeds, as n says.
func (lab *simLab) awaitsFunction(c *task.Ctx, n int64) {
	w, user, want := lab.world, c.UserID, error(nil)
	if n%3 == 0 {
		want = errSimFunction
	}
	cancelled, returned := c.Cancelled(), 0
	err := c.Await(func(ctx context.Context) error {
		returned++
		w.check(!cancelled && returned == 1, "request %d: a function runs %d times, its body was cancelled: %v", user, returned, cancelled)
		if ctx.Err() != nil {
			w.lateFunctions++
		}
		return want
	})
	if !errors.Is(err, task.ErrCancelled) {
		w.check(returned == 1 && err == want, "request %d: a function that has returned %d times has the error %v, want %v", user, returned, err, want)
	}
}

// watch has each run of a body checked. The body must start when it may, its input must not
// change until it ends, and each reply must answer its command.
func (lab *simLab) watch(spec *task.Spec) {
	run := tasks.Body(*spec)
	computes := func(c *task.Ctx) (rowset.RowSet, error) {
		w := lab.world
		w.bodies++
		w.requestOf(c).begun[c.Node.Index] = true
		defer func() { w.bodies-- }()
		start := w.sim.Now()
		place := trace.OnPool
		if w.exec.current == nil {
			place = trace.Inline
			w.inlineBodyStarts(c)
		} else {
			w.workStarts(c)
		}
		span := w.began(c, place)
		defer func() { w.ended(c, span) }()
		given := snapshotOf(c)
		lab.burn(w.cpuTime())
		w.check(given.holds(c), "node %s of request %d was changed before its body ran", given.node.ID, given.user)
		out, err := run(c)
		lab.burn(w.cpuTime())
		w.check(given.holds(c), "node %s of request %d was changed while its body ran", given.node.ID, given.user)
		w.bodyEnds(c, start)
		return out, err
	}
	onLoop := func(c *task.Ctx, b *loopBody) (out rowset.RowSet, err error) {
		w := lab.world
		w.bodies++
		w.requestOf(c).begun[c.Node.Index] = true
		w.loopBodyStarts(c)
		start := w.sim.Now()
		span := w.began(c, trace.OnLoop)
		n, given := b.job, snapshotOf(c)
		tasks.Env(c).Waiter = &simWaiter{w: w, inner: b, node: n, given: given, ctx: c}
		defer func() {
			w.bodies--
			span.end = w.sim.Now()
			if !n.settled {
				w.bodyEnds(c, start)
			}
			switch {
			case !n.settled:
			case stoppedEarly(err):
				w.stopped++
			default:
				w.late++
			}
			w.check(given.holds(c), "node %s of request %d was changed while its body ran", given.node.ID, given.user)
		}()
		if w.hits(w.cfg.stalls) { // it computes for long where it should not
			w.stalled = true
			w.sim.MoveTo(w.sim.Now().Add(w.between(0, 5*time.Millisecond)))
			w.unrecorded(c, start)
		}
		return run(c)
	}
	*spec = tasks.WithBody(*spec, func(c *task.Ctx) (rowset.RowSet, error) {
		if lab.inReference {
			return run(c)
		}
		if b, ok := tasks.Env(c).Waiter.(*loopBody); ok {
			return onLoop(c, b)
		}
		return computes(c)
	})
}

// burn has CPU work take time, unless it is the reference's. Work on the loop holds up everything.
func (lab *simLab) burn(d time.Duration) {
	w := lab.world
	switch {
	case lab.inReference || d <= 0:
	case w.exec.current != nil:
		w.exec.burn(d)
	default:
		w.stalled = true
		w.sim.MoveTo(w.sim.Now().Add(d))
	}
}

func (w *simWorld) cpuTime() time.Duration {
	if w.hits(0.3) {
		return 0
	}
	return w.between(0, w.cfg.cpuMax)
}

// workStarts checks that work may start on a worker.
func (w *simWorld) workStarts(c *task.Ctx) {
	w.logf("cpu runs %s of %d", c.Node.ID, c.UserID)
	q := w.requestOf(c)
	w.ofGeneration(c, q)
	w.check(w.exec.current != nil, "node %s of request %d: CPU work on the loop", c.Node.ID, c.UserID)
	w.check(!c.Cancelled(), "node %s of request %d: work that was cancelled before it started, runs", c.Node.ID, c.UserID)
	w.check(!w.sim.Ended(), "node %s of request %d: work after the end of the loop", c.Node.ID, c.UserID)
	w.check(w.requests[q.user-1].answers == 0, "node %s of request %d: started for an answered request", c.Node.ID, c.UserID)
	for r := w.engine.runs.First(); r != nil; r = r.link.Next() {
		if r.Req.UserID == q.user && q.mode != plan.OffloadAll {
			w.check(r.State.err == nil, "node %s of request %d: started on a worker after an error", c.Node.ID, c.UserID)
		}
	}
}

// loopBodyStarts checks that a body may start on the loop.
func (w *simWorld) loopBodyStarts(c *task.Ctx) {
	w.logf("loop runs %s of %d", c.Node.ID, c.UserID)
	w.check(w.exec.current == nil, "node %s of request %d: a body that awaits, on a worker", c.Node.ID, c.UserID)
	w.startsOnLoop(c)
}

// inlineBodyStarts checks that a body that does not wait may run on the loop.
func (w *simWorld) inlineBodyStarts(c *task.Ctx) {
	w.logf("inline runs %s of %d", c.Node.ID, c.UserID)
	q, spec := w.requestOf(c), tasks.SpecOf(c.Node)
	w.inline++
	w.check(q.mode != plan.OffloadAll && !w.cfg.placement.NoInlineExecution && (spec.Inline || spec.Cheap) && !spec.Expensive &&
		(c.Node.Inline == nil || *c.Node.Inline), "node %s of request %d: must not run inline", c.Node.ID, c.UserID)
	if r := w.startsOnLoop(c); r != nil {
		w.check(r.State.head == len(r.State.readyQueue), "node %s of request %d: runs inline while others are ready",
			c.Node.ID, c.UserID)
	}
}

// ofGeneration checks that a body has the node and the tables that its request began with.
func (w *simWorld) ofGeneration(c *task.Ctx, q *simRequest) {
	w.step()
	w.check(c.Registry == q.graph.Registry && c.Node == q.graph.Nodes[c.Node.Index], "node %s of request %d: its body has the tables or the node of another generation",
		c.Node.ID, c.UserID)
}

// startsOnLoop checks that a body may start on the loop, and returns the run of its request.
func (w *simWorld) startsOnLoop(c *task.Ctx) *run {
	q := w.requestOf(c)
	w.ofGeneration(c, q)
	w.check(!c.Cancelled(), "node %s of request %d: cancelled before it started", c.Node.ID, c.UserID)
	w.check(!w.sim.Ended(), "node %s of request %d: started after the end of the loop", c.Node.ID, c.UserID)
	w.check(w.requests[q.user-1].answers == 0, "node %s of request %d: started for an answered request", c.Node.ID, c.UserID)
	w.check(!q.req.Deadline.Passed(w.sim.Now()), "node %s of request %d: started past the deadline", c.Node.ID, c.UserID)
	for r := w.engine.runs.First(); r != nil; r = r.link.Next() {
		if r.Req.UserID == q.user {
			w.check(r.State.err == nil, "node %s of request %d: started after an error", c.Node.ID, c.UserID)
			return r
		}
	}
	w.violate("node %s of request %d: started for a request that does not run", c.Node.ID, c.UserID)
	return nil
}

// bodyEnds notes a body that has ended after the deadline of its node. The node must fail then,
// wherever the body ran.
func (w *simWorld) bodyEnds(c *task.Ctx, start clock.Time) {
	w.step()
	q := w.requestOf(c)
	b := bounds{arrived: q.req.arrived, deadline: q.deadline, nodeTimeout: w.cfg.nodeTimeout, required: q.required}
	if q.mode != plan.OffloadAll && b.nodeDeadline(c.Node, start).Passed(w.sim.Now()) {
		q.lateBodies[c.Node.Index] = true
	}
}

// snapshot is a body's input.
type snapshot struct {
	node   *plan.Node
	user   int64
	in     [2]rowset.RowSet // first input, first reference
	digest uint64           // of in
	weight float64
	filter string
}

func snapshotOf(c *task.Ctx) (s snapshot) {
	s.node, s.user = c.Node, c.UserID
	if len(c.Inputs) > 0 {
		s.in[0] = c.Inputs[0]
	}
	if len(c.Refs) > 0 {
		s.in[1] = c.Refs[0]
	}
	s.digest = digestOf(s.in[:]...)
	s.weight, _ = c.Params.Float(paramWeight)
	s.filter, _ = c.Params.String(paramBlocklist)
	return s
}

// holds reports whether c still has that input.
func (s *snapshot) holds(c *task.Ctx) bool {
	t := snapshotOf(c)
	return s.node == t.node && s.user == t.user && s.filter == t.filter && s.digest == t.digest &&
		math.Float64bits(s.weight) == math.Float64bits(t.weight) &&
		sameMemory(s.in[0], t.in[0]) && sameMemory(s.in[1], t.in[1])
}

func sameMemory(a, b rowset.RowSet) bool {
	return a.Batch == b.Batch && a.N == b.N && len(a.Rows) == len(b.Rows) &&
		(len(a.Rows) == 0 || &a.Rows[0] == &b.Rows[0])
}

// simWaiter is the engine's waiter as a watched body sees it. Loop only.
type simWaiter struct {
	w     *simWorld
	inner *loopBody
	node  *asyncJob
	ctx   *task.Ctx
	given snapshot

	inRedis  bool
	since    clock.Time // of the Redis call
	batch    *resp.Batch
	sent     []byte
	rest     []byte // the bytes of sent whose replies are still to come
	taken    int    // commands before it
	commands int    // of this batch
	earlier  int    // commands of earlier batches
	content  int    // bytes of the strings in their replies
	expected []byte
	got      []byte
	args     [][]byte
}

// Exchange implements taskrun.Waiter.
func (s *simWaiter) Exchange(ep *registry.Endpoint, x *remote.Exchange) error {
	err := s.inner.Exchange(ep, x)
	s.woke("exchange")
	return err
}

// NewBatch implements taskrun.Waiter.
func (s *simWaiter) NewBatch() *resp.Batch { return s.inner.NewBatch() }

// Sleep implements taskrun.Waiter.
func (s *simWaiter) Sleep(d time.Duration) error {
	start := s.w.sim.Now()
	if s.node.settled && s.w.closing {
		s.w.lateSleeps++
	}
	err := s.inner.Sleep(d)
	if s.node.settled {
		s.w.countWoken()
	}
	s.woke("sleep")
	s.w.check(errors.Is(err, task.ErrCancelled) == s.node.settled, "a sleep of node %s of request %d ended with %v, orphan: %v",
		s.given.node.ID, s.given.user, err, s.node.settled)
	if err == nil {
		s.w.check(s.w.sim.Now().Sub(start) >= d, "node %s of request %d woke up early", s.given.node.ID, s.given.user)
	}
	return err
}

// Compute implements taskrun.Computer.
func (s *simWaiter) Compute(fn func()) error {
	err := s.inner.Compute(fn)
	s.woke("computation")
	return err
}

// Await implements taskrun.Waiter.
func (s *simWaiter) Await(fn func() error) error {
	err := s.inner.Await(fn)
	if s.node.settled {
		s.w.countWoken()
	}
	s.woke("await")
	s.w.check(errors.Is(err, task.ErrCancelled) == s.node.settled, "an await of node %s of request %d ended with %v, orphan: %v",
		s.given.node.ID, s.given.user, err, s.node.settled)
	return err
}

// Do implements taskrun.Waiter.
func (s *simWaiter) Do(ep *registry.Endpoint, b *resp.Batch) (resp.Replies, error) {
	s.begins(ep, b)
	replies, err := s.inner.Do(ep, b)
	s.ends(b, err)
	if err == nil {
		s.checkReplies(b.Len(), replies)
	}
	return replies, err
}

// Begin implements taskrun.Waiter.
func (s *simWaiter) Begin(ep *registry.Endpoint, b *resp.Batch) error {
	s.begins(ep, b)
	err := s.inner.Begin(ep, b)
	s.inRedis = err == nil
	s.batch = b
	return err
}

// Next implements taskrun.Waiter.
func (s *simWaiter) Next() (from int, part resp.Replies, err error) {
	from, part, err = s.inner.Next()
	s.ends(s.batch, err)
	s.inRedis = err == nil && part.Len() > 0 && from+part.Len() < s.batch.Len()
	if part.Len() > 0 {
		s.w.check(from == s.taken, "the replies from %d on followed the first %d", from, s.taken)
		s.checkReplies(part.Len(), part)
	} else if err == nil {
		s.w.check(s.taken == s.batch.Len(), "%d replies to %d commands", s.taken, s.batch.Len())
	}
	return from, part, err
}

// begins notes a batch before it is sent.
func (s *simWaiter) begins(ep *registry.Endpoint, b *resp.Batch) {
	s.sent = append(s.sent[:0], b.Encoded()...)
	s.rest, s.taken, s.content = s.sent, 0, 0
	s.earlier, s.commands = s.earlier+s.commands, b.Len()
	s.w.countAsked(s.sent)
	s.inRedis, s.since = true, s.w.sim.Now()
	if b.Len() > s.w.options[ep.Index].MaxInflight {
		s.w.parts++
	}
}

// ends checks the end of a wait for replies.
func (s *simWaiter) ends(b *resp.Batch, err error) {
	s.inRedis = false
	s.woke("redis call")
	if errors.Is(err, resp.ErrTooLarge) {
		s.w.tooLarge++
		size := s.answerBytes()
		s.w.check(size > s.w.cfg.replyBytes || s.w.cfg.redis.fault+s.w.cfg.redis.refuse > 0, "a call of node %s of request %d was refused %d bytes of %d",
			s.given.node.ID, s.given.user, size, s.w.cfg.replyBytes)
	}
	if err == nil {
		s.w.check(bytes.Equal(s.sent, b.Encoded()), "the batch of node %s of request %d was changed under way",
			s.given.node.ID, s.given.user)
	}
}

// answerBytes returns the length of the servers' answers to the batch, if all is well.
func (s *simWaiter) answerBytes() int {
	var answers []byte
	for rest := s.sent; len(rest) > 0; {
		_, args, _, left, err := redcon.ReadNextCommand(rest, s.args[:0])
		if err != nil {
			s.w.violate("a batch is malformed: %v", err)
			return 0
		}
		answers = simAnswer(answers, args)
		s.args, rest = args, left
	}
	return len(answers)
}

// contentBytes returns the length of all strings in a reply.
func contentBytes(r resp.Reply) (n int) {
	if r.Kind() != resp.Array {
		return len(r.Bytes())
	}
	for e := range r.All() {
		n += contentBytes(e)
	}
	return n
}

// countWoken counts an orphan's sleep that ends now.
func (w *simWorld) countWoken() {
	if now := w.sim.Now(); w.wokenAt != now {
		w.woken, w.wokenAt = 0, now
	}
	w.woken++
	w.wokenMax = max(w.wokenMax, w.woken)
}

// woke checks the end of a wait.
func (s *simWaiter) woke(from string) {
	s.w.check(s.w.exec.current == nil, "node %s of request %d was resumed off the loop", s.given.node.ID, s.given.user)
	s.w.check(!s.w.sim.Ended(), "node %s of request %d was resumed after the end of the loop", s.given.node.ID, s.given.user)
	s.w.check(s.given.holds(s.ctx), "node %s of request %d was changed during its %s", s.given.node.ID, s.given.user, from)
	s.w.check(s.ctx.Cancelled() == s.node.settled, "node %s of request %d is cancelled: %v, an orphan: %v",
		s.given.node.ID, s.given.user, s.ctx.Cancelled(), s.node.settled)
}

// checkReplies checks that the next n replies answer their commands.
func (s *simWaiter) checkReplies(n int, replies resp.Replies) {
	s.w.check(replies.Len() == n, "%d replies to %d commands", replies.Len(), n)
	rest := s.rest
	defer func() {
		s.rest = rest
		s.taken += n
	}()
	for i := range replies.Len() {
		_, args, _, left, err := redcon.ReadNextCommand(rest, s.args[:0])
		s.w.check(err == nil && len(args) > 1, "command %d is malformed", i)
		if s.w.violation != nil {
			return
		}
		s.args, rest = args, left
		reply := replies.At(i)
		var down *resp.OpError
		if errors.As(reply.Err(), &down) { // One node of a cluster is down, and the others have answered.
			s.w.check(s.w.cfg.redisTrouble(), "node %s of request %d: %s %s has failed with %v", s.given.node.ID, s.given.user, args[0], args[1], down)
			s.w.requestOf(s.ctx).noteFault(s.given.node.Index, s.earlier+s.taken+i, reply)
			s.w.cluster.met["commands of a node that is down"]++
			continue
		}
		s.content += contentBytes(reply)
		s.w.check(s.w.cfg.replyBytes == 0 || s.content <= s.w.cfg.replyBytes, "a call of node %s of request %d got %d bytes of %d",
			s.given.node.ID, s.given.user, s.content, s.w.cfg.replyBytes)
		if text := string(reply.Bytes()); strings.Contains(text, " injected by ") {
			s.w.check(strings.HasSuffix(text, " "+string(args[1])), "the reply %q came to the command for %s", text, args[1])
			s.w.requestOf(s.ctx).noteFault(s.given.node.Index, s.earlier+s.taken+i, reply)
			continue
		}
		s.expected = simAnswer(s.expected[:0], args)
		s.got = appendReply(s.got[:0], reply)
		s.w.check(bytes.Equal(s.expected, s.got), "node %s of request %d: %s %s was answered %q, want %q",
			s.given.node.ID, s.given.user, args[0], args[1], s.got, s.expected)
	}
}

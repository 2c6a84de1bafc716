package task

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// A Read is what a body asks Redis about many keys, and what becomes of the replies. It takes the keys in their order,
// each once: from a reply by Take, or from the engine's memory by Recall. Take refers to the views of a
// reply, and Recall to the bytes of a value, only until it returns. No method waits. Only the body uses it.
type Read interface {
	// Keys returns the number of keys.
	Keys() int
	// Batch returns the end of the batch that begins with key from: PartCommands keys at most. An empty batch ends the
	// read.
	Batch(from int) (to int)
	// Key appends the text of key k to dst.
	Key(dst []byte, k int) []byte
	// Ask appends the commands for the keys from to to-1, one for each.
	Ask(b *resp.Batch, from, to int)
	// Take takes the replies at to to-1, of which the first is about key k. One of the wrong kind fails the node, or the key
	// is left out. io.EOF ends the read: nothing that follows is of interest.
	Take(replies resp.Replies, at, to, k int) error
	// Recall takes key k from a value that Take has written to the Memo.
	Recall(value []byte, k int) error
}

// A Memo is where Take writes what it takes of a key, for the engine's memory. If there is a Memo, Take gets one reply at
// a time. Only the body uses it.
type Memo struct {
	Bytes []byte // Take appends the value, which may be empty
	whole bool
}

// Keep says that Bytes have the value of the key that Take takes, for others to take in place of a reply. A nil Memo keeps none.
func (m *Memo) Keep() {
	if m != nil {
		m.whole = true
	}
}

// A FallibleRead is a Read whose failure need not fail the node. Only the body uses it.
type FallibleRead interface {
	Read
	// Failed takes the error that has ended the read. Nil has the body go on.
	Failed(err error) error
}

// Recall says which values of a Read come from the engine's memory, and are kept there. Its Shape says what a value
// means: reads with equal shapes have equal values. Without one nothing is kept. All keys begin with its Prefix.
// MaxAge is the greatest age that the node accepts; zero is the endpoint's. Immutable; any goroutine.
type Recall = taskrun.RecallRule

// Reads are the reads of one run of a node: see Spec.Ask. Only the body uses it.
type Reads struct {
	asked []asked
	under int // the number of the read under way
	wave  int // calls of Ask so far

	// Of the read under way. Keys before from were taken; those from there to to are the batch, looked for in memory up to looked.
	from, to int
	looked   int
	long     bool       // some value of the latest find was long
	turn     clock.Time // when the present turn began; zero: the body has not looked at the clock
	misses   []int      // keys of the batch that are not in memory, ascending
	held     []valueOf  // keys of the batch behind a miss that are in memory, ascending
	bytes    []byte     // of held
	taken    []valueOf  // keys of the batch that replies have brought, ascending
	memo     Memo       // of taken
	put      int        // of taken: so many are in memory
	rest     bool       // the latest batch came from memory: others get their turns before the next one
	answered int        // commands of the batch whose replies were taken
	released int        // of held: so many were taken

	given   *taskrun.ReadAhead // what an earlier node has read for this one; nil: nothing
	numbers []int              // of the commands of given that a batch has asked
	batch   resp.Batch         // to be looked for in given
	ahead   *ahead             // what this node reads for later ones; nil before the first that does
	spare   []*taskrun.ReadAhead
	beside  *Reads // of the earlier node that asks what this one will read; nil: it runs itself

	tape    *taskrun.Tape   // of the node; nil: the request is not recorded
	cached  rowcache.Use    // what the body has taken from memory so far
	recall  *taskrun.Recall // nil before the first read of keys that may be in memory
	places  []place         // of NewRead: the first are of this body, and the others are empty
	used    int             // places of this body
	running bool            // the body has begun and not ended
	resumes bool            // it goes on where it had to wait
}

// asked is a Read, and where it goes. Only the body uses it.
type asked struct {
	read     Read
	keys     taskrun.Keys // the same
	endpoint *registry.Endpoint
	keeps    bool // the engine has a memory for it
	rule     *Recall
}

// valueOf is a copy of a value from memory, or for it: where it ends. Copies outlast a wait. Only the body uses it.
type valueOf struct{ key, end int }

// valueAt returns copy i.
func valueAt(values []valueOf, bytes []byte, i int) []byte {
	from := 0
	if i > 0 {
		from = values[i-1].end
	}
	return bytes[from:values[i].end]
}

// longValue is from how many bytes on a value is looked for by itself, so that a body soon sees how long it works.
const longValue = 2 << 10

// heldMax is how many bytes of values wait for a reply that comes before them: the batch ends there.
const heldMax = 1 << 20

// Add adds a read of an endpoint. If the engine keeps what it reads, Take writes that to the Memo. A nil rule keeps nothing.
func (r *Reads) Add(c *Ctx, ep *registry.Endpoint, rule *Recall, read Read) *Memo {
	engine := c.env.Engine
	keeps := rule != nil && rule.Shape != "" && engine != nil && engine.Tables != nil && engine.Tables[ep.Index] != nil
	if r.asked = append(r.asked, asked{read: read, endpoint: ep}); !keeps {
		return nil
	}
	a := &r.asked[len(r.asked)-1]
	a.keys, a.keeps, a.rule = read, true, rule
	return &r.memo
}

// NewRead returns a zero T, which is to be added to r by its address. The memory may be that of a read of an earlier
// body, so nothing of that body's result may refer to it.
func NewRead[T any](r *Reads) *T {
	for i := r.used; i < len(r.places); i++ {
		if read, ok := r.places[i].read.(*T); ok {
			r.places[i], r.places[r.used] = r.places[r.used], r.places[i]
			r.used++
			return read
		}
	}
	read := new(T)
	r.places = slices.Insert(r.places, r.used, place{read, func() { *read = *new(T) }})
	r.used++
	return read
}

// place has the memory of a read: a pointer, and what drops what it refers to. Only the body uses it.
type place struct {
	read  any
	clear func()
}

// keepPlaces is how many places wait for a later body.
const keepPlaces = 6

// Len returns how many reads were added so far. All but those of the present Ask have ended.
func (r *Reads) Len() int { return len(r.asked) }

// At returns the read that was added as number i.
func (r *Reads) At(i int) Read { return r.asked[i].read }

// run runs a body that asks and makes. It may be called again if it has ended with taskrun.ErrMustRead: then it goes
// on from there.
func (r *Reads) run(c *Ctx, spec *Spec) (rowset.RowSet, error) {
	for {
		for ; r.under < len(r.asked); r.under++ {
			a := &r.asked[r.under]
			if err := r.read(c, a); err != nil {
				f, ok := a.read.(FallibleRead)
				if !ok || err == taskrun.ErrMustRead {
					return rowset.RowSet{}, err
				}
				if err = f.Failed(err); err != nil {
					return rowset.RowSet{}, err
				}
				r.forget()
			}
			if r.reads() {
				r.leaveAhead(c)
			}
			r.from, r.to, r.rest = 0, 0, false
		}
		if r.wave == max(1, spec.Waves) {
			return r.make(c, spec)
		}
		if err := r.ask(c, spec); err != nil {
			return rowset.RowSet{}, err
		}
		if r.wave++; r.under == len(r.asked) {
			return r.make(c, spec)
		}
		if r.wave == 1 && c.env.Request != nil {
			r.given = c.env.Request.Ahead.Take(c.Node.Index)
		}
	}
}

// ask calls Ask for the present wave.
func (r *Reads) ask(c *Ctx, spec *Spec) error {
	if c.large() {
		return c.apart(func() error { return spec.Ask(c, r, r.wave) })
	}
	return spec.Ask(c, r, r.wave)
}

// make calls Make.
func (r *Reads) make(c *Ctx, spec *Spec) (rowset.RowSet, error) {
	if c.large() {
		return r.makeApart(c, spec)
	}
	return spec.Make(c, r)
}

// makeApart is make for many values. What the other allocates would otherwise be that of both.
func (r *Reads) makeApart(c *Ctx, spec *Spec) (out rowset.RowSet, err error) {
	err = c.apart(func() (err error) {
		out, err = spec.Make(c, r)
		return err
	})
	return out, err
}

// large reports whether the body has more values than the loop should handle in one go.
func (c *Ctx) large() bool {
	e := c.env.Engine
	if e == nil || e.LoopValues == 0 {
		return false
	}
	rows := c.counted
	for i := range c.Inputs {
		rows = max(rows, int64(c.Inputs[i].N))
	}
	return rows*int64(1+c.Node.Writes) > int64(e.LoopValues)
}

// apart calls fn, which must not wait, where the engine computes.
func (c *Ctx) apart(fn func() error) (err error) {
	w, ok := c.env.Waiter.(taskrun.Computer)
	if !ok {
		return taskrun.ErrMustRead
	}
	engine := c.env.Engine
	now := *engine // The loop may change its own.
	c.env.Engine = &now
	refused := w.Compute(func() {
		defer func() {
			if v := recover(); v != nil {
				err = panicOf(v)
			}
		}()
		err = fn()
	})
	c.env.Engine = engine
	if refused != nil {
		return refused
	}
	return err
}

// read carries out one read, from where it is.
func (r *Reads) read(c *Ctx, a *asked) error {
	if r.tape != nil && r.from == 0 && r.to == 0 {
		if r.tape.Call(); r.tape.Plays {
			return r.play(a)
		}
	}
	if a.keeps && r.from == 0 && r.to == 0 {
		a.keeps = r.open(c, a, &r.cached)
	}
	for n := a.read.Keys(); r.from < n; r.from = r.to {
		if r.to == r.from {
			if len(r.taken) > 0 {
				if err := r.keep(c, a); err != nil {
					return err
				}
			}
			if r.rest {
				if err := r.giveTurns(c); err != nil {
					return err
				}
			}
			if r.rest, r.to = false, a.read.Batch(r.from); r.to == r.from {
				break
			}
			r.answered, r.released, r.numbers, r.looked = 0, 0, r.numbers[:0], r.from
			r.misses, r.held, r.bytes = r.misses[:0], r.held[:0], r.bytes[:0]
			if n := len(c.Node.Ahead); n > 0 { // Their commands leave with it.
				r.to = min(r.to, r.from+PartCommands/(n+1))
			}
		}
		if a.keeps {
			if err := r.look(c, a); err != nil {
				return err
			}
		}
		if a.keeps && len(r.misses) == 0 {
			r.rest = true
			continue
		}
		if err := r.exchange(c, a); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	if len(r.taken) == 0 {
		return nil
	}
	return r.keep(c, a)
}

// open opens the memory for a read. It reports whether there is room for it.
func (r *Reads) open(c *Ctx, a *asked, use *rowcache.Use) bool {
	if r.recall == nil {
		r.recall = new(taskrun.Recall)
	}
	return r.recall.Open(c.env.Engine.Tables[a.endpoint.Index], c.env.Engine.Clock, c.env.Now, use, a.rule)
}

// look looks for the keys of the batch in memory. Keys before the first miss are taken at once, and those behind it
// are held until their turn. It may shorten the batch, and lets others work from time to time.
func (r *Reads) look(c *Ctx, a *asked) error {
	for r.looked < r.to {
		n := min(r.to-r.looked, rowcache.FindMax)
		if r.long {
			n = 1
		}
		longest, k := 0, r.looked
		for _, value := range r.recall.Find(k, k+n, a.keys) {
			longest = max(longest, len(value))
			switch {
			case value == nil:
				r.misses = append(r.misses, k)
			case len(r.misses) > 0:
				r.bytes = append(r.bytes, value...)
				r.held = append(r.held, valueOf{key: k, end: len(r.bytes)})
			default:
				if r.tape != nil {
					r.noteRecalled(a, value, k)
				}
				if err := a.read.Recall(value, k); err != nil {
					return err
				}
			}
			k++
		}
		r.long = longest > longValue
		if r.looked = k; len(r.bytes) > heldMax {
			r.to = r.looked
		}
		if r.looked < r.to {
			if err := r.shareTurn(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchange has the keys of the batch that are not in memory from an earlier node, or asks Redis.
func (r *Reads) exchange(c *Ctx, a *asked) error {
	if r.given != nil {
		if there, err := r.takeGiven(c, a); there || err != nil {
			r.rest = true
			return err
		}
	}
	if c.env.Waiter == nil {
		return taskrun.ErrMustRead
	}
	if err := r.askAhead(c, a); err != nil {
		return err
	}
	for {
		err := r.send(c, a)
		if err == nil || !r.reads() || !errors.Is(err, resp.ErrTooLarge) {
			return err
		}
		r.dropAhead() // Each node reads for itself.
	}
}

// appendTo appends the commands for the keys of the batch that are not in memory, from command number first on. It lets others
// work from time to time.
func (r *Reads) appendTo(c *Ctx, b *resp.Batch, a *asked, first int) error {
	n := r.to - r.from
	if a.keeps {
		n = len(r.misses)
	}
	if !a.keeps && n-first <= askFirst {
		a.read.Ask(b, r.from+first, r.from+n)
		return nil
	}
	looked := 0 // at the clock, after so many bytes
	for end := min(n, first+askFirst); first < n; end = min(n, first+max(1, askBytes*b.Len()/max(1, b.Size()))) {
		if !a.keeps {
			a.read.Ask(b, r.from+first, r.from+end)
		} else {
			for _, k := range r.misses[first:end] {
				a.read.Ask(b, k, k+1)
			}
		}
		if first = end; b.Size()-looked > askBytes {
			looked = b.Size()
			if err := r.shareTurn(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// A body appends commands of about askBytes between two looks at the clock. The first askFirst commands tell how long they are.
const (
	askFirst = 4
	askBytes = 16 << 10
)

// send asks Redis for the keys of the batch that are neither in memory nor taken, and for those of later nodes.
func (r *Reads) send(c *Ctx, a *asked) error {
	redis, first, ahead := Redis{waiter: c.env.Waiter, endpoint: a.endpoint}, r.answered, r.reads()
	b := redis.NewBatch()
	var err error
	if ahead {
		err = r.fillAhead(c, b, a, first)
	} else {
		err = r.appendTo(c, b, a, first)
	}
	if err != nil {
		return err
	}
	if r.turn = 0; a.keeps {
		r.recall.Sending()
	}
	parts := redis.Parts(b)
	for parts.Next() {
		replies := parts.Replies()
		if ahead {
			replies = r.ahead.divide(replies, parts.From())
		}
		asked := b
		if ahead {
			asked = &r.ahead.asked
		}
		if err := r.take(a, replies, first+parts.From(), asked, parts.From()); err != nil {
			return err
		}
	}
	if err := parts.Err(); err != nil {
		if !(r.reads() && errors.Is(err, resp.ErrTooLarge)) { // Then it asks again.
			r.tape.Fail(err)
		}
		return err
	}
	return r.release(a, r.to)
}

// takeGiven takes the batch from what an earlier node has read. It takes all or nothing.
func (r *Reads) takeGiven(c *Ctx, a *asked) (there bool, err error) {
	g := r.given
	if g.Endpoint != a.endpoint {
		return false, nil
	}
	if r.answered == 0 {
		r.batch.Reset()
		if err := r.appendTo(c, &r.batch, a, 0); err != nil {
			return false, err
		}
		if r.numbers = g.Find(&r.batch, r.numbers[:0]); len(r.numbers) < r.batch.Len() || a.keeps && !r.recall.Accept(g) {
			return false, nil
		}
	}
	for i, n := r.answered, len(r.numbers); i < n; i = r.answered {
		to := i + 1
		for to < min(n, i+rowcache.FindMax) && r.numbers[to] == r.numbers[to-1]+1 {
			to++
		}
		if err := r.take(a, g.Replies.Replies().Slice(r.numbers[i], r.numbers[to-1]+1), i, &r.batch, i); err != nil {
			return true, err
		}
		if err := r.shareTurn(c); err != nil {
			return true, err
		}
	}
	return true, r.release(a, r.to)
}

// take takes replies to the commands of the batch from number first on, and what is held of the keys before them. The commands are
// in b from number at on.
func (r *Reads) take(a *asked, replies resp.Replies, first int, b *resp.Batch, at int) error {
	n := replies.Len()
	if !a.keeps {
		if r.tape != nil && n > 0 {
			r.tape.Replied(replies, b.Span(at, at+n))
		}
		r.answered, r.memo.Bytes = first+n, r.memo.Bytes[:0]
		return a.read.Take(replies, 0, n, r.from+first)
	}
	for i := range n {
		k := r.misses[first+i]
		if err := r.release(a, k); err != nil {
			return err
		}
		if r.tape != nil {
			r.tape.Replied(replies.Slice(i, i+1), b.Span(at+i, at+i+1))
		}
		begin := len(r.memo.Bytes)
		r.memo.whole = false
		if err := a.read.Take(replies, i, i+1, k); err != nil {
			return err
		}
		if end := len(r.memo.Bytes); r.memo.whole && end-begin <= rowcache.ValueMax {
			r.taken = append(r.taken, valueOf{key: k, end: end})
			begin = end
		}
		r.answered, r.memo.Bytes = first+i+1, r.memo.Bytes[:begin]
	}
	return nil
}

// release takes the values that are held of keys before to.
func (r *Reads) release(a *asked, to int) error {
	if !a.keeps {
		return nil
	}
	for ; r.released < len(r.held) && r.held[r.released].key < to; r.released++ {
		if r.tape != nil {
			r.noteRecalled(a, valueAt(r.held, r.bytes, r.released), r.held[r.released].key)
		}
		if err := a.read.Recall(valueAt(r.held, r.bytes, r.released), r.held[r.released].key); err != nil {
			return err
		}
	}
	return nil
}

// noteRecalled records key k, which comes from memory.
func (r *Reads) noteRecalled(a *asked, value []byte, k int) {
	r.tape.AskKey(a.read, k)
	r.tape.Add(taskrun.TapeMemory, value)
}

// play carries out one read with what the tape has. After its end, or its error, the rest of the call was asked for, too.
func (r *Reads) play(a *asked) (err error) {
	n, over := a.read.Keys(), false
	for k := 0; k < n; k++ {
		if k == r.to && !over {
			if r.to = a.read.Batch(k); r.to == k {
				return nil
			}
		}
		p := r.tape.Next()
		if p.Kind == 0 && over {
			break
		}
		var took error
		switch p.Kind {
		case taskrun.TapeMemory:
			if r.tape.AskKey(a.read, k); !over {
				took = a.read.Recall(p.Bytes, k)
			}
		case taskrun.TapeReply:
			r.batch.Reset()
			a.read.Ask(&r.batch, k, k+1)
			if r.tape.Ask(r.batch.Encoded()); !over {
				r.memo.Bytes = r.memo.Bytes[:0]
				took = a.read.Take(p.Reply, 0, 1, k)
			}
		case taskrun.TapeBroken:
			took = p.Err
		default:
			took = taskrun.ErrOtherTape
		}
		if took != nil && !over {
			over = true
			if err = took; took == io.EOF {
				err = nil
			}
		}
	}
	return err
}

// keep puts what replies have brought into memory.
func (r *Reads) keep(c *Ctx, a *asked) error {
	for ; r.put < len(r.taken); r.put++ {
		if r.put%rowcache.FindMax == rowcache.FindMax-1 {
			if err := r.shareTurn(c); err != nil {
				return err
			}
		}
		r.recall.Put(r.taken[r.put].key, a.keys, valueAt(r.taken, r.memo.Bytes, r.put))
	}
	r.forget()
	return nil
}

// forget empties what was to be kept.
func (r *Reads) forget() { r.taken, r.memo.Bytes, r.put = r.taken[:0], r.memo.Bytes[:0], 0 }

// turnMost is how long a body works on the loop before others have their turns. It looks once for some keys.
const turnMost = 100 * time.Microsecond

// shareTurn lets others work if the body has worked for long.
func (r *Reads) shareTurn(c *Ctx) error {
	if c.env.Engine == nil || c.env.Engine.LoopValues == 0 {
		return nil
	}
	now := c.env.Engine.Clock.Now()
	switch {
	case r.turn == 0:
		r.turn = now
	case now.Sub(r.turn) > turnMost:
		return r.giveTurns(c)
	}
	return nil
}

// giveTurns lets others work before the body goes on.
func (r *Reads) giveTurns(c *Ctx) error {
	r.turn = 0
	if c.env.Waiter == nil {
		return taskrun.ErrMustRead
	}
	return c.env.Waiter.Sleep(time.Nanosecond)
}

// The room that Reads keep for their next use.
const (
	keepKeys  = 3 * 8192
	keepBytes = 128 << 10
)

// clear ends the use of r by a body.
func (r *Reads) clear() {
	for _, p := range r.places[:r.used] {
		p.clear()
	}
	if r.used = 0; len(r.places) > keepPlaces {
		r.places = r.places[:0:0]
	}
	clear(r.asked)
	if r.given != nil || r.ahead != nil {
		r.endAhead()
	}
	if cap(r.misses)+cap(r.taken)+cap(r.held) > keepKeys || cap(r.bytes)+cap(r.memo.Bytes) > keepBytes {
		r.misses, r.taken, r.held, r.bytes, r.memo = nil, nil, nil, nil, Memo{}
	}
	r.forget()
	r.asked, r.tape = r.asked[:0], nil
	r.under, r.wave, r.from, r.to, r.turn = 0, 0, 0, 0, 0
	r.long, r.rest, r.running = false, false, false
}

// read runs a body that asks and makes, or goes on with it. The end of the run clears the reads, also after a panic: see
// Invoke.
func (c *Ctx) read(spec *Spec) (out rowset.RowSet, err error) {
	r := c.env.Reads
	if r == nil {
		r = new(Reads)
		c.env.Reads = r
	}
	r.running, r.resumes, r.tape = true, false, c.tape()
	out, err = r.run(c, spec)
	r.resumes = err == taskrun.ErrMustRead
	return out, err
}

package blocking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
)

// ErrSwitched ends connections to a server when sentinels name another master.
var ErrSwitched = errors.New("sentinels name another master")

// OfMaster adds the address of the master that sentinels have named to an error of a connection to it. Of nil it returns nil.
func OfMaster(addr string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("master %s: %w", addr, err)
}

const (
	sentinelsEach    = 300 * time.Millisecond // at most, for one sentinel to name the master
	sentinelSilence  = 2 * time.Second        // after which a sentinel that reports switches gets a ping; after another one it is given up
	sentinelPause    = 500 * time.Millisecond // between two attempts to hear of masters
	sentinelMaxBytes = 1 << 16                // of one reply
)

// Sentinels find the master of a name, and learn when another server becomes master. From the first Master on, a
// goroutine holds a connection to one of them (SUBSCRIBE +switch-master). Each call of Master begins with another
// sentinel, so that a sentinel that is cut off from the others does no harm. Each answer also tells of further sentinels.
// A SentinelState says who is asked, and what is believed. Any goroutine.
type Sentinels struct {
	name     string
	clock    clock.Clock
	each     resp.Options      // of a sentinel, but for its address
	asked    []*Client         // a sentinel each that the user has named
	switched func(addr string) // may be nil
	onDenied func(addr string, err error)
	life     context.Context // ends with Close
	end      context.CancelFunc
	hearing  sync.Once

	mu    sync.Mutex
	state *SentinelState
	more  []*Client // of state.More
}

// NewSentinels returns sentinels that were not asked yet. o.Addr lists them, and o.Master is the name of the master.
// o.Sentinels says how they are reached. switched is called on a separate goroutine with each new address of the master,
// including the first; nil: nobody needs it.
func NewSentinels(clk clock.Clock, o resp.Options, switched func(addr string)) *Sentinels {
	o = o.WithDefaults()
	s := &Sentinels{name: o.Master, clock: clk, switched: switched, onDenied: o.OnDenied}
	each := resp.Options{
		ClientName: o.ClientName, ConnectTimeout: min(o.ConnectTimeout, sentinelsEach), RequestTimeout: min(o.RequestTimeout, sentinelsEach), Seed: o.Seed,
		MaxReplyBytes: sentinelMaxBytes, Sentinel: true,
		Secure: o.Sentinels.Secure, Username: o.Sentinels.Username, Password: o.Sentinels.Password, Login: o.Sentinels.Login,
	}
	for addr := range strings.SplitSeq(o.Addr, ",") {
		each.Addr = addr
		s.asked = append(s.asked, NewClient(clk, each))
	}
	s.each, s.state = each, NewSentinelState(strings.Split(o.Addr, ","))
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all calls and the goroutine, and does not wait for that. A second Close does nothing.
func (s *Sentinels) Close() {
	s.end()
	for _, c := range s.all() {
		c.Close()
	}
}

// all returns the sentinels that are known, those that the user has named first.
func (s *Sentinels) all() []*Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.asked, s.more)
}

// follow takes what the state has just heard: it opens clients of the sentinels that it knows now, closes those of others,
// and returns the master, of which the owner is told if it is another one than before. The caller holds mu.
func (s *Sentinels) follow(before string) (master string) {
	more := make([]*Client, len(s.state.More()))
	for i, addr := range s.state.More() {
		if at := slices.IndexFunc(s.more, func(c *Client) bool { return c.Addr() == addr }); at >= 0 {
			more[i] = s.more[at]
			continue
		}
		each := s.each
		each.Addr = addr
		more[i] = NewClient(s.clock, each)
	}
	for _, c := range s.more {
		if !slices.Contains(more, c) {
			c.Close()
		}
	}
	if s.more = more; s.life.Err() != nil {
		for _, c := range more {
			c.Close()
		}
	}
	if master = s.state.Master(); master != before && s.switched != nil {
		s.switched(master)
	}
	return master
}

// Master returns the address of the master. It asks one sentinel after the other until one knows, within the time of ctx. Its error says what each answered.
func (s *Sentinels) Master(ctx context.Context) (addr string, err error) {
	s.hearing.Do(func() { go s.hear() })
	s.mu.Lock()
	order := s.state.Named()
	s.mu.Unlock()
	var failed []error
	for i, addr := range order {
		c := s.asked[slices.IndexFunc(s.asked, func(c *Client) bool { return c.Addr() == addr })]
		if ctx.Err() != nil || s.life.Err() != nil {
			return "", answers(append(failed, cmp.Or(s.life.Err(), context.Cause(ctx))))
		}
		limit := sentinelsEach
		if by, ok := ctx.Deadline(); ok {
			limit = min(limit, time.Until(by)/time.Duration(len(s.asked)-i+1))
		}
		n, err := s.ask(c, limit)
		if err == nil {
			return s.learn(n), nil
		}
		failed = append(failed, err)
	}
	master, errs := s.askMore(ctx)
	if master == "" {
		return "", answers(append(failed, errs...))
	}
	return master, nil
}

// askMore asks all sentinels that others have told of, and takes what most of those say that answer.
func (s *Sentinels) askMore(ctx context.Context) (master string, failed []error) {
	s.mu.Lock()
	more := s.more
	s.mu.Unlock()
	limit := sentinelsEach
	if by, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(by))
	}
	said, errs := make([]*Naming, len(more)), make([]error, len(more))
	var group sync.WaitGroup
	for i, c := range more {
		group.Go(func() { said[i], errs[i] = s.ask(c, limit) })
	}
	group.Wait()
	said = slices.DeleteFunc(said, func(n *Naming) bool { return n == nil })
	failed = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(said) == 0 {
		return "", failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Master()
	if err := s.state.Vote(said); err != nil {
		return "", append(failed, err)
	}
	return s.follow(before), nil
}

// answers are those of sentinels that have not named the master, none nil.
type answers []error

// Error implements error, on one line.
func (a answers) Error() string {
	texts := make([]string, len(a))
	for i, err := range a {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all answers.
func (a answers) Unwrap() []error { return a }

// ask asks one sentinel.
func (s *Sentinels) ask(c *Client, limit time.Duration) (*Naming, error) {
	var b resp.Batch
	b.Cmd("SENTINEL", "MASTER", s.name)
	b.Cmd("SENTINEL", "SENTINELS", s.name)
	n := &Naming{Tells: []string{c.Addr()}}
	err := c.Do(&b, c.clock.Now().Add(limit), func(replies resp.Replies) (err error) {
		if n.Master, n.Epoch, err = parseMaster(replies.At(0)); err != nil {
			return err
		}
		if list := replies.At(1); list.Kind() == resp.Array { // Otherwise it denies that: those that were named are enough.
			for other := range list.All() {
				if addr, _, err := parseMaster(other); err == nil {
					n.Tells = append(n.Tells, addr)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sentinel %s: %w", c.Addr(), err)
	}
	return n, nil
}

// refusalOf returns the error of a sentinel's reply, or nil.
func refusalOf(reply resp.Reply) error {
	err := reply.Err()
	if refusal := (*resp.ServerError)(nil); errors.As(err, &refusal) {
		refusal.Sentinel = true
	}
	return err
}

// parseMaster reads a reply to SENTINEL MASTER: fields and values in turns.
func parseMaster(reply resp.Reply) (addr string, epoch int64, err error) {
	if err := refusalOf(reply); err != nil {
		return "", 0, err
	}
	if reply.Kind() != resp.Array {
		return "", 0, fmt.Errorf("SENTINEL MASTER: the reply is of kind %s", reply.Kind())
	}
	var host, port string
	for name, value := range reply.Pairs() {
		switch string(name.Bytes()) {
		case "ip":
			host = string(value.Bytes())
		case "port":
			port = string(value.Bytes())
		case "config-epoch":
			epoch, _ = value.ParseInt()
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err == nil {
		addr, err = cluster.Address(host, int64(n), "")
	}
	if err != nil {
		return "", 0, fmt.Errorf("SENTINEL MASTER: no address in %q and %q", host, port)
	}
	return addr, epoch, nil
}

// learn takes what a sentinel says that the user has named, and returns the address of the master as known now.
func (s *Sentinels) learn(n *Naming) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Master()
	s.state.Believe(n)
	return s.follow(before)
}

// isMaster reports whether an address is the master's as far as is known.
func (s *Sentinels) isMaster(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return addr == s.state.Master()
}

// hear listens to one sentinel after the other. One that denies it is passed over for a while.
func (s *Sentinels) hear() {
	denials := make(map[*Client]*resp.Denial)
	for turn := 0; s.life.Err() == nil; turn++ {
		all := s.all()
		c := all[turn%len(all)]
		maps.DeleteFunc(denials, func(c *Client, _ *resp.Denial) bool { return !slices.Contains(all, c) })
		denial := denials[c]
		if denial == nil {
			denial = new(resp.Denial)
			denials[c] = denial
		}
		if !denial.Pauses(c.clock.Now()) {
			heard, err := s.listen(c) // If it fails, the next one may answer.
			if heard {
				denial.Note(nil, c.clock.Now())
			}
			if denial.Note(err, c.clock.Now()) {
				s.onDenied(c.Addr(), err)
			}
		}
		select {
		case <-time.After(sentinelPause):
		case <-s.life.Done():
		}
	}
}

// askAgain asks for the master, because a sentinel reports a switch.
func (s *Sentinels) askAgain(c *Client) error {
	if !slices.Contains(s.asked, c) {
		ctx, cancel := context.WithTimeout(s.life, time.Second)
		defer cancel()
		_, err := s.Master(ctx)
		return err
	}
	n, err := s.ask(c, sentinelsEach)
	if err == nil {
		s.learn(n)
	}
	return err
}

// listen asks a sentinel for the master first, and then whenever it reports a switch. It returns when the sentinel no
// longer answers. heard says that the sentinel was to report switches.
func (s *Sentinels) listen(c *Client) (heard bool, err error) {
	limit := time.Now().Add(c.opts.ConnectTimeout)
	ctx, cancel := context.WithDeadline(s.life, limit)
	defer cancel()
	cn := &conn{client: c}
	cn.lookFn = cn.look
	if err := cn.dial(ctx); err != nil {
		return false, err
	}
	nc := cn.Conn
	defer func() { cn.unhook(); _ = nc.Close() }()
	var buf ReplyBuffer
	buf.reset(c.opts.Limits)
	if err := cn.greet(&buf, limit); err != nil {
		return false, err
	}
	var commands resp.Batch
	commands.Cmd("SUBSCRIBE", "+switch-master")
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return false, err
	}
	for silent := false; ; {
		if commands.Len() > 0 {
			if _, err := nc.Write(commands.Encoded()); err != nil {
				return heard, err
			}
			commands.Reset()
		}
		if err := nc.SetReadDeadline(time.Now().Add(sentinelSilence)); err != nil {
			return heard, err
		}
		replies, _, err := buf.read(nc, 1, sentinelMaxBytes)
		switch {
		case timedOut(err) && !silent:
			silent = true
			commands.Cmd("PING")
			continue
		case err != nil:
			return heard, err
		}
		silent = false
		message := replies.At(0)
		if refusal := refusalOf(message); refusal != nil && !heard {
			return false, refusal
		}
		heard = true
		if message.Kind() == resp.Array && message.Len() == 3 && string(message.At(0).Bytes()) != "pong" {
			if err := s.askAgain(c); err != nil {
				return heard, err
			}
		}
		if buf.used == buf.filled {
			buf.used, buf.filled = 0, 0
		}
	}
}

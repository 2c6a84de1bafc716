package resp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop"
)

// TestRandomSharing has calls ask for the same few keys, in one part or several. Replies have
// any length, some are too long, and they come at once or part by part. Calls are cancelled,
// time out, and lose their connections. The server numbers the commands that it executes and
// answers with the number, so a reply says when its command was executed. Each reply must come
// from a command that was executed after its call had asked. A read after a write in the same
// call must be executed after that write. No command is executed more often than calls asked
// for it. A call fails for the length of its replies if and only if they are longer than the
// bound.
func TestRandomSharing(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(*seeds) {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { newSharing(t, seed, seen).play() }) {
			return
		}
	}
	if *seeds >= 100 {
		for _, what := range []string{"shared commands", "calls in parts", "pieces", "too large", "kept replies",
			"skipped replies", "cancelled unsent", "lost connections"} {
			require.Positive(t, seen[what], what)
		}
	}
}

// sharing is the world of one seed.
type sharing struct {
	t      *testing.T
	rng    *rand.Rand
	net    *network
	client *Client
	seen   map[string]int

	executed int            // commands so far
	times    map[string]int // how often each was executed, and
	asked    map[string]int // asked for
	flows    [3]Flow
	calls    []*sharer
}

// sharer is one use of a call.
type sharer struct {
	w         *sharing
	call      Call
	commands  [][]string
	askedAt   int // commands executed before it asked
	bound     int
	wrote     int // the number of its last write that was answered
	got, size int // replies taken, and the bytes of their contents
	done      bool
	gaveUp    bool
}

func newSharing(t *testing.T, seed uint64, seen map[string]int) *sharing {
	w := &sharing{t: t, rng: rand.New(rand.NewPCG(seed, 2)), net: newNetwork(t), seen: seen, times: map[string]int{}, asked: map[string]int{}}
	w.client = newClient(w.net, Options{
		MaxInflight: 1 + w.rng.IntN(100), Connections: 1 + w.rng.IntN(2), RequestTimeout: 100 * time.Millisecond, Seed: seed,
	})
	w.client.shedBytes = 1 + w.rng.IntN(300)
	w.net.greet = w.execute
	return w
}

// execute answers LRANGE key n with n elements, and other commands with one. Each element is
// the number of the execution.
func (w *sharing) execute(args []string) ([]byte, bool) {
	w.executed++
	w.times[strings.Join(args, " ")]++
	number := strconv.Itoa(w.executed)
	switch args[0] {
	case "LRANGE":
		n, err := strconv.Atoi(args[2])
		require.NoError(w.t, err)
		b := redcon.AppendArray(nil, n)
		for range n {
			b = redcon.AppendBulkString(b, number)
		}
		return b, true
	case "GETRANGE": // one long value of blanks and the number
		n, err := strconv.Atoi(args[2])
		require.NoError(w.t, err)
		return redcon.AppendBulkString(nil, fmt.Sprintf("%*s", n, number)), true
	case "SET":
		return redcon.AppendInt(nil, int64(w.executed)), true
	default:
		return redcon.AppendBulkString(nil, number), true
	}
}

func (w *sharing) ask() {
	s := &sharer{w: w, askedAt: w.executed, bound: 1 << 30}
	size := 1 + w.rng.IntN(6)
	if w.rng.IntN(4) == 0 {
		size = 1 + w.rng.IntN(60)
	}
	for range size {
		key := "k" + strconv.Itoa(w.rng.IntN(4))
		var command []string
		switch k := w.rng.IntN(20); {
		case k < 2:
			command = []string{"SET", key, "x"}
		case k < 4:
			command = []string{"LRANGE", key, strconv.Itoa(w.rng.IntN(3) * w.rng.IntN(40))}
		case k < 5:
			command = []string{"GETRANGE", key, strconv.Itoa(w.rng.IntN(3) * w.rng.IntN(200))}
		default:
			command = []string{"GET", key}
		}
		s.commands = append(s.commands, command)
		s.call.Batch.Cmd(command...)
	}
	if w.rng.IntN(3) == 0 {
		s.bound = 1 + w.rng.IntN(400)
		s.call.MaxReplyBytes = s.bound
	}
	if w.rng.IntN(3) == 0 {
		s.call.Deadline = w.net.h.Clock.Now().Add(time.Duration(1+w.rng.IntN(30)) * time.Millisecond)
	}
	if w.rng.IntN(2) == 0 {
		s.call.Flow = &w.flows[w.rng.IntN(len(w.flows))]
	}
	if w.rng.IntN(2) == 0 {
		s.call.Batch.ExpectReplies(w.rng.IntN(100_000))
	}
	if w.rng.IntN(2) == 0 {
		s.call.Part = func(*Call) {
			w.seen["pieces"]++
			s.take()
			if w.rng.IntN(8) == 0 {
				s.cancel()
			}
		}
	}
	s.call.Done = func(call *Call) { s.ended() }
	require.NoError(w.t, w.client.Do(&s.call))
	for _, command := range s.commands {
		w.asked[strings.Join(command, " ")]++
	}
	w.calls = append(w.calls, s)
}

// take checks the replies that have come.
func (s *sharer) take() {
	t := s.w.t
	require.False(t, s.done || s.gaveUp)
	require.Equal(t, s.got, s.call.From)
	for i, reply := range s.call.Replies.All() {
		command := s.commands[s.got]
		number := 0
		if command[0] == "LRANGE" {
			require.Equal(t, command[2], strconv.Itoa(reply.Len()))
			for e := range reply.All() {
				number, _ = strconv.Atoi(string(e.Bytes()))
			}
		} else {
			number, _ = strconv.Atoi(strings.TrimSpace(string(reply.Bytes())))
		}
		if command[0] != "LRANGE" || command[2] != "0" {
			require.Greater(t, number, s.askedAt, "reply %d was executed before its call asked", i)
			require.Greater(t, number, s.wrote, "reply %d was executed before a write in front of it", i)
		}
		if command[0] == "SET" {
			s.wrote = number
		}
		s.got++
		s.size += sizeOfReply(reply)
	}
}

// sizeOfReply returns the bytes of a reply that count, as Client counts them.
func sizeOfReply(r Reply) int {
	first, last := r.t.span(r.i, r.t.after(r.i))
	return int(last - first)
}

func (s *sharer) ended() {
	w := s.w
	switch {
	case s.gaveUp:
		require.ErrorIs(w.t, s.call.Err, loop.ErrCancelled)
	case s.call.Err == nil:
		s.take()
		require.Equal(w.t, len(s.commands), s.got)
		require.LessOrEqual(w.t, s.size, s.bound)
	case errors.Is(s.call.Err, ErrTooLarge):
		w.seen["too large"]++
		require.Greater(w.t, s.mostBytes(), s.bound)
	default:
		require.True(w.t, errors.Is(s.call.Err, ErrTimeout) || errors.Is(s.call.Err, ErrConnectionLost), s.call.Err)
	}
	require.False(w.t, s.done)
	s.done = true
}

// mostBytes bounds the replies to all commands, in bytes, with the framing of RESP.
func (s *sharer) mostBytes() (n int) {
	for _, command := range s.commands {
		n += 32
		if len(command) > 2 {
			each, _ := strconv.Atoi(command[2])
			n += 16 * each
		}
	}
	return n
}

func (s *sharer) cancel() {
	if s.call.gathered > s.call.launched {
		s.w.seen["cancelled unsent"]++
	}
	if s.call.state == callSettled {
		require.ErrorIs(s.w.t, s.w.client.Cancel(&s.call), loop.ErrBusy)
		return
	}
	require.NoError(s.w.t, s.w.client.Cancel(&s.call))
	s.gaveUp = true
}

func (w *sharing) play() {
	for range 80 {
		switch k := w.rng.IntN(20); {
		case k < 10:
			for range 1 + w.rng.IntN(6) {
				w.ask()
			}
		case k < 12:
			if s := w.calls[w.rng.IntN(max(1, len(w.calls))):]; len(s) > 0 && !s[0].done && !s[0].gaveUp {
				s[0].cancel()
			}
		case k < 16:
			for _, p := range w.net.conns {
				if n := len(p.answers); n > 0 {
					p.answerInPieces(w.rng, 1+w.rng.IntN(n))
				}
			}
			w.net.settle()
		case k < 17:
			w.net.mute = w.rng.IntN(3) > 0
		case k < 18 && w.rng.IntN(4) == 0:
			if p := w.net.conns; len(p) > 0 && p[len(p)-1].connected && !p[len(p)-1].closed {
				w.seen["lost connections"]++
				p[len(p)-1].hangUp()
			}
		case k < 19:
			w.net.advance(time.Duration(w.rng.IntN(10)) * time.Millisecond)
		default:
			w.net.settle()
		}
		w.check()
	}
	w.net.mute = false
	for range 200 { // The parts of a call follow each other.
		for _, p := range w.net.conns {
			p.answer(len(p.answers))
		}
		w.net.settle()
	}
	w.net.advance(100 * time.Millisecond)
	w.check()
	stats := w.client.Stats()
	require.Zero(w.t, stats.Inflight+stats.Waiting)
	w.seen["shared commands"] += int(stats.Asked - stats.Commands)
	for _, s := range w.calls {
		require.True(w.t, s.done || s.gaveUp)
		if len(s.commands) > w.client.opts.wholeCommands() {
			w.seen["calls in parts"]++
		}
	}
	w.client.Close()
	w.net.settle()
	checkInvariants(w.t, w.client)
}

func (w *sharing) check() {
	checkInvariants(w.t, w.client)
	for command, times := range w.times {
		require.LessOrEqual(w.t, times, w.asked[command], command)
	}
	for _, s := range w.calls {
		if s.call.pieces != nil && s.call.pieces.kept != nil {
			w.seen["kept replies"]++
		}
	}
	for _, cn := range w.client.conns {
		if cn.decoder.skipping {
			w.seen["skipped replies"]++
		}
	}
}

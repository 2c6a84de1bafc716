package scheduler

import (
	"bytes"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/testing/clustertest"
	"github.com/rankd/rankd/internal/testing/simnet"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
)

// The data set of the simulation is a function of the key. So every reply tells which command
// it answers, and the answer to any command is known without a server.

// mix scatters two numbers (splitmix64's finalizer).
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b + 1
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// simAnswer appends the reply to a command.
func simAnswer(dst []byte, args [][]byte) []byte {
	if len(args) < 2 {
		return redcon.AppendError(dst, "ERR too few arguments")
	}
	prefix, digits, _ := bytes.Cut(args[1], []byte{':'})
	id, err := strconv.ParseInt(string(digits), 10, 64)
	switch string(args[0]) {
	case "HGETALL":
		if err == nil {
			return simHash(dst, id)
		}
	case "LRANGE":
		last, lastErr := strconv.Atoi(string(args[3]))
		if err == nil && lastErr == nil {
			return simList(dst, string(prefix), id, last)
		}
	case "AUTH", "SELECT", "CLIENT":
		return redcon.AppendOK(dst)
	}
	return redcon.AppendError(dst, "ERR unknown command or bad argument")
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// simHash is user:{id}: some users do not exist, some do not have a country, and a few are not
// a hash.
func simHash(dst []byte, id int64) []byte {
	switch h := mix(uint64(id), 'u'); {
	case h%512 == 0:
		return redcon.AppendError(dst, wrongType)
	case h%16 == 1:
		return redcon.AppendArray(dst, 0)
	case h%16 == 2:
		dst = redcon.AppendArray(dst, 2)
	default:
		dst = redcon.AppendArray(dst, 4)
		dst = redcon.AppendBulkString(dst, "country")
		dst = redcon.AppendBulkString(dst, "c"+strconv.FormatInt(id, 10))
	}
	dst = redcon.AppendBulkString(dst, "name")
	return redcon.AppendBulkString(dst, "n"+strconv.FormatInt(id, 10))
}

// simList is follow:{id} and the like: up to six ids, some of which are not numbers.
func simList(dst []byte, prefix string, id int64, last int) []byte {
	list := mix(uint64(id), uint64(prefix[0]))
	if list%512 == 0 {
		return redcon.AppendError(dst, wrongType)
	}
	n := min(int(list>>9%7), last+1)
	dst = redcon.AppendArray(dst, n)
	for i := range n {
		entry := mix(list, uint64(i))
		text := strconv.FormatUint(entry>>8%1000, 10)
		switch entry % 32 {
		case 0:
			text = "x" + text
		case 1:
			text = "-" + text
		}
		dst = redcon.AppendBulkString(dst, text)
	}
	return dst
}

// simServer is the Redis behind one connection.
type simServer struct {
	w      *simWorld
	peer   *simnet.Peer
	args   [][]byte
	until  clock.Time  // busy so long
	output []simOutput // that leaves later, in order
	silent bool        // hung: does not answer any more

	node    int           // of the cluster
	asking  bool          // ASKING came last
	server  int           // of simMaster
	role    func() string // what ROLE answers; nil: sentinels do not name the server
	refused bool          // it has answered ROLE as a replica
}

type simPeer = simnet.Peer

// simOutput is what a server sends at once.
type simOutput struct {
	data   []byte
	hangUp bool // after the data
}

func (w *simWorld) accept(p *simnet.Peer) *simServer {
	s := &simServer{w: w, peer: p, node: clustertest.Nobody}
	p.OnData = s.received
	return s
}

// received executes the commands that are complete.
func (s *simServer) received(data []byte) (consumed int) {
	var out []byte
	hangUp := false
	rest := data
	for len(rest) > 0 && !hangUp {
		complete, args, _, left, err := redcon.ReadNextCommand(rest, s.args[:0])
		if err != nil {
			s.w.violate("the server read garbage: %v: %q", err, rest)
			break
		}
		if !complete {
			break
		}
		command := rest[:len(rest)-len(left)]
		s.args, rest = args, left
		if text := s.elsewhere(args, command); text != "" {
			out = append(out, text...)
			continue
		}
		s.w.countReached(args, command)
		s.w.master.executes(s, args)
		out, hangUp = s.execute(out, args)
	}
	s.until = max(s.until, s.w.sim.Now()).Add(s.w.cfg.latency(s.w))
	if len(out) > 0 || hangUp {
		s.output = append(s.output, simOutput{out, hangUp})
		s.w.sim.At(s.until, s.send) // once for each output: at one instant, any of them sends the oldest
	}
	return len(data) - len(rest)
}

// elsewhere is what a server answers to a command that it does not execute. It is empty for the others.
func (s *simServer) elsewhere(args [][]byte, command []byte) string {
	switch {
	case s.silent:
	case s.node != clustertest.Nobody:
		return s.w.cluster.answer(s, args, command)
	case s.role != nil && string(args[0]) == "ROLE":
		return string(redcon.AppendBulkString(redcon.AppendArray(nil, 1), s.role()))
	}
	return ""
}

// commandCounts counts commands by a hash of their text. The check is merely less strict if two
// texts share a count.
type commandCounts [4096]uint16

func (c *commandCounts) of(command []byte) *uint16 {
	h := uint32(2166136261) // FNV-1a
	for _, b := range command {
		h = (h ^ uint32(b)) * 16777619
	}
	return &c[h%uint32(len(c))]
}

// countReached checks that a command that may have reached a server is never sent again. So no
// command is executed more often than bodies have asked for it.
func (w *simWorld) countReached(args [][]byte, command []byte) {
	if own(args) {
		return
	}
	reached, asked := w.reached.of(command), w.asked.of(command)
	*reached++
	w.check(*reached <= *asked, "%s %s was executed %d times and asked for %d times", args[0], args[1], *reached, *asked)
}

// countAsked counts the commands of a batch.
func (w *simWorld) countAsked(batch []byte) {
	var args [][]byte
	for len(batch) > 0 {
		_, parsed, _, left, err := redcon.ReadNextCommand(batch, args[:0])
		if err != nil || len(left) == len(batch) {
			w.violate("a batch holds bytes that are not a command: %q", batch)
			return
		}
		*w.asked.of(batch[:len(batch)-len(left)])++
		args, batch = parsed, left
	}
}

// send sends the oldest output.
func (s *simServer) send() {
	out := s.output[0]
	s.output = s.output[1:]
	s.peer.Write(out.data)
	if out.hangUp {
		s.peer.Close(nil)
	}
}

// execute appends what the server answers to one command, faults included.
func (s *simServer) execute(out []byte, args [][]byte) (_ []byte, hangUp bool) {
	w, f := s.w, &s.w.cfg.redis
	if s.silent {
		return out, false
	}
	refuses := w.hits(f.refuse)
	if !refuses && !w.hits(f.fault) {
		return simAnswer(out, args), false
	}
	key := string(args[len(args)-1])
	if len(args) > 1 {
		key = string(args[1])
	}
	w.faults++
	if refuses {
		return redcon.AppendError(out, "ERR injected by "+key), false
	}
	switch w.rng.IntN(8) {
	case 0, 1:
		w.logf("redis errs on %s", key)
		return redcon.AppendError(out, "ERR injected by "+key), false
	case 2:
		return redcon.AppendError(out, "LOADING injected by "+key), false
	case 3:
		w.logf("redis answers %s with the wrong type", key)
		return redcon.AppendBulkString(out, "wrong type injected by "+key), false
	case 4:
		w.logf("redis answers %s with garbage", key)
		return append(out, "?\x00garbage\r\n"...), false
	case 5:
		w.logf("redis hangs from %s on", key)
		s.silent = true
		return out, false
	case 6: // half a reply, then the end of the connection
		w.logf("redis hangs up within %s", key)
		at := len(out)
		out = simAnswer(out, args)
		return out[:at+w.rng.IntN(len(out)-at)], true
	default:
		w.logf("redis is late with %s", key)
		s.until = max(s.until, w.sim.Now()).Add(w.between(5*time.Millisecond, 60*time.Millisecond))
		return simAnswer(out, args), false
	}
}

// appendReply appends the encoding of a reply. The caller compares it with the one that
// simAnswer makes.
func appendReply(dst []byte, r resp.Reply) []byte {
	switch r.Kind() {
	case resp.Array:
		dst = redcon.AppendArray(dst, r.Len())
		for e := range r.All() {
			dst = appendReply(dst, e)
		}
		return dst
	case resp.Bulk:
		return redcon.AppendBulk(dst, r.Bytes())
	case resp.Error:
		return redcon.AppendError(dst, string(r.Bytes()))
	case resp.SimpleString:
		return redcon.AppendString(dst, string(r.Bytes()))
	case resp.Integer:
		return redcon.AppendInt(dst, r.Int())
	default:
		return redcon.AppendNull(dst)
	}
}

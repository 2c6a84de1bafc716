package resp

import (
	"bytes"
	"hash/maphash"
)

// A Joint makes fewer commands of those that several askers have in one batch: equal ones are one, and HMGETs of one
// key are one with the fields of all. It divides the replies among those who asked. The zero value is ready. One
// goroutine at a time.
type Joint struct {
	asked  *Batch
	sent   []sentCommand
	places []joinedPlace // by command of asked
	seed   maphash.Seed
	index  []int32 // of sent by its identity, plus 1; 0: empty. Its length is a power of two
	expect int     // bytes of a reply, as the askers expect
}

// sentCommand stands for the commands that are one. Only its Joint uses it.
type sentCommand struct {
	first, last int32 // of the commands that asked for it
	fields      int32 // of them all; 0: it is no HMGET
}

// joinedPlace says where the answer to a command is. Only its Joint uses it.
type joinedPlace struct {
	next    int32 // the next command that is one with it; -1: none
	from, n int32 // of the elements of the reply; n is 0 if the whole reply answers it
}

// Begin begins with the commands that a batch has: each is one by itself. The batch gets those of others later, and
// stays as it is until the last reply is divided.
func (j *Joint) Begin(asked *Batch) {
	if j.index == nil {
		j.seed = maphash.MakeSeed()
	}
	j.asked, j.sent, j.places, j.expect = asked, j.sent[:0], j.places[:0], asked.replyBytes
	clear(j.index)
	for i := range asked.Len() {
		j.append(i)
	}
}

// Len returns the number of commands to be sent.
func (j *Joint) Len() int { return len(j.sent) }

// Join has commands from to to-1 of the batch join.
func (j *Joint) Join(from, to int) {
	j.expect = max(j.expect, j.asked.replyBytes)
	for i := from; i < to; i++ {
		_, found := j.find(i)
		if found < 0 {
			j.append(i)
			continue
		}
		j.place(i)
		s := &j.sent[found]
		if s.fields > 0 {
			n := int32(j.fields(i))
			if s.first == s.last {
				j.places[s.first].n = s.fields
			}
			j.places[i].from, j.places[i].n = s.fields, n
			s.fields += n
		}
		j.places[s.last].next, s.last = int32(i), int32(i)
	}
}

// append has command i be sent by itself.
func (j *Joint) append(i int) {
	j.place(i)
	if len(j.index) < 2*(len(j.sent)+1) {
		j.grow()
	}
	slot, _ := j.find(i)
	j.sent = append(j.sent, sentCommand{int32(i), int32(i), int32(j.fields(i))})
	if j.index[slot] == 0 { // Otherwise an equal one of the same asker is there: others join that.
		j.index[slot] = int32(len(j.sent))
	}
}

// place makes room for the place of command i.
func (j *Joint) place(i int) {
	for len(j.places) <= i {
		j.places = append(j.places, joinedPlace{next: -1})
	}
}

// grow makes the index larger.
func (j *Joint) grow() {
	j.index = make([]int32, max(64, 4*len(j.index)))
	for k, s := range j.sent {
		if slot, found := j.find(int(s.first)); found < 0 {
			j.index[slot] = int32(k + 1)
		}
	}
}

// find returns which command to be sent is one with command i, or -1, and its slot in the index.
func (j *Joint) find(i int) (slot uint64, found int) {
	identity, _ := identityOf(j.asked.Span(i, i+1))
	if len(j.index) == 0 {
		return 0, -1
	}
	for slot = maphash.Bytes(j.seed, identity); ; slot++ {
		slot &= uint64(len(j.index) - 1)
		k := j.index[slot]
		if k == 0 {
			return slot, -1
		}
		first := int(j.sent[k-1].first)
		if other, _ := identityOf(j.asked.Span(first, first+1)); bytes.Equal(identity, other) {
			return slot, int(k - 1)
		}
	}
}

// fields returns the number of fields for which command i asks, or 0 if it is no HMGET.
func (j *Joint) fields(i int) int {
	command := j.asked.Span(i, i+1)
	_, rest := identityOf(command)
	if rest == nil {
		return 0
	}
	n, _ := number(command[1:])
	return n - 2
}

// hmget is how the arguments of a HMGET begin.
var hmget = []byte("$5\r\nHMGET\r\n$")

// identityOf returns the part of an encoded command in which commands agree that may be one: of a HMGET the name and
// the key, and its fields follow; of any other the whole.
func identityOf(command []byte) (identity, fields []byte) {
	_, head := number(command[1:])
	if arguments := command[1+head:]; bytes.HasPrefix(arguments, hmget) {
		n, digits := number(arguments[len(hmget):])
		if end := len(hmget) + digits + n + len("\r\n"); end < len(arguments) {
			return arguments[:end], arguments[end:]
		}
	}
	return command, nil
}

// number returns the number with which text begins, and the length of its line.
func number(text []byte) (n, line int) {
	for ; text[line] != '\r'; line++ {
		n = 10*n + int(text[line]-'0')
	}
	return n, line + len("\r\n")
}

// Write appends the commands to be sent to dst. It expects replies as long as the askers do, times the commands that are
// one.
func (j *Joint) Write(dst *Batch) {
	most := 1
	for _, s := range j.sent {
		if s.fields == 0 || s.first == s.last {
			dst.Copy(j.asked, int(s.first))
			continue
		}
		identity, _ := identityOf(j.asked.Span(int(s.first), int(s.first)+1))
		dst.begun(int(s.fields) + 2)
		dst.buf = append(dst.buf, identity...)
		joined := 0
		for i := s.first; i >= 0; i = j.places[i].next {
			_, fields := identityOf(j.asked.Span(int(i), int(i)+1))
			dst.buf = append(dst.buf, fields...)
			joined++
		}
		most = max(most, joined)
	}
	dst.ExpectReplies(most * j.expect)
}

// First returns the first command of the batch that command i to be sent answers, and Next the one behind command i of
// the batch, or -1.
func (j *Joint) First(i int) int { return int(j.sent[i].first) }

// Next returns the command behind command i of the batch that is one with it, or -1.
func (j *Joint) Next(i int) int { return int(j.places[i].next) }

// IsDivided reports whether the reply to command i to be sent has more than what its first command has asked for.
func (j *Joint) IsDivided(i int) bool { return j.places[j.sent[i].first].n > 0 }

// Put puts a copy of what answers command i of the batch into place at of n of g. An error, or any other reply that
// cannot be divided, answers each of those who asked.
func (j *Joint) Put(g *Gathered, at, n, i int, reply Reply) {
	p := j.places[i]
	if p.n > 0 && reply.Kind() == Array && reply.Len() >= int(p.from+p.n) {
		g.setPart(at, n, reply, int(p.from), int(p.from+p.n))
		return
	}
	g.Set(at, n, reply)
}

package taskrun

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/rankd/rankd/resp"
)

// A Tape has what the body of one node takes from outside, in the order in which it does. It records that, or it plays
// what another one has recorded, and the body takes that. It belongs to the body, and to others once that has ended. One goroutine
// at a time. A nil Tape: nobody records the request.
type Tape struct {
	Plays   bool
	Stop    error       // with which the node fails, and its body does not run; nil: it runs. Only if Plays
	Values  []TapeValue // that were recorded, or that it plays
	Bytes   []byte      // of values from memory and of bodies, one behind the other
	Errors  []error     // of failed calls, in order
	Replies resp.Gathered
	Outside bool // the body has waited for a function of its own, which may have brought anything

	values, bytes, errors, replies int // were played
	part                           int // replies of the present value
	asked                          bool
	hash                           xxhash.Digest // of what was asked for
	room                           [40]byte      // for a key
}

// A TapeValue is one value, or some replies. Immutable.
type TapeValue struct {
	Kind TapeKind
	N    int // replies; of other kinds bytes
}

// TapeKind is record.Kind, for packages that do without those files. Immutable.
type TapeKind uint8

// The kinds.
const (
	TapeCall TapeKind = iota + 1
	TapeReply
	TapeMemory
	TapeBody
	TapeBroken
)

// The errors of a body whose tape plays.
var (
	ErrOtherTape = errors.New("the record has nothing for what the node asks here")
	ErrNotOnTape = errors.New("no record has what a function of Await brings")
)

// Call begins a call: a read, a batch or an exchange. It passes over what the call before has left.
func (t *Tape) Call() {
	switch {
	case t == nil:
	case !t.Plays:
		t.Values = append(t.Values, TapeValue{Kind: TapeCall})
	default:
		for t.Next().Kind != 0 {
		}
		if t.values < len(t.Values) {
			t.values++
		}
	}
}

// Ask notes what the node asks for.
func (t *Tape) Ask(text []byte) {
	if len(text) == 0 {
		return
	}
	if !t.asked {
		t.asked = true
		t.hash.Reset()
	}
	_, _ = t.hash.Write(text) // It takes everything.
}

// AskKey notes a key whose value comes from memory.
func (t *Tape) AskKey(keys Keys, k int) { t.Ask(keys.Key(t.room[:0], k)) }

// Asked returns the digest of all that was asked for; zero: nothing was.
func (t *Tape) Asked() uint64 {
	if !t.asked {
		return 0
	}
	return t.hash.Sum64()
}

// Replied records the replies to commands.
func (t *Tape) Replied(replies resp.Replies, commands []byte) {
	t.Ask(commands)
	t.Replies.Add(replies)
	t.Values = append(t.Values, TapeValue{TapeReply, replies.Len()})
}

// Add records a value from memory, or the body of an answer.
func (t *Tape) Add(kind TapeKind, bytes []byte) {
	t.Values = append(t.Values, TapeValue{kind, len(bytes)})
	t.Bytes = append(t.Bytes, bytes...)
}

// Fail records the error of a call, and returns it.
func (t *Tape) Fail(err error) error {
	if t != nil && !t.Plays && err != nil {
		t.Values = append(t.Values, TapeValue{Kind: TapeBroken})
		t.Errors = append(t.Errors, err)
	}
	return err
}

// Played is a value that a Tape plays: one of the fields, by its Kind. The views are valid as long as the Tape. Only the body uses it.
type Played struct {
	Kind  TapeKind // 0: the call has no more
	Bytes []byte
	Reply resp.Replies // one
	Err   error
}

// Next returns the next value of the call.
func (t *Tape) Next() (p Played) {
	if t.values == len(t.Values) || t.Values[t.values].Kind == TapeCall {
		return Played{}
	}
	v := t.Values[t.values]
	t.values++
	switch p.Kind = v.Kind; v.Kind {
	case TapeReply:
		p.Reply = t.Replies.Replies().Slice(t.replies, t.replies+1)
		t.replies++
		if t.part++; t.part < v.N {
			t.values--
		} else {
			t.part = 0
		}
	case TapeBroken:
		p.Err = t.Errors[t.errors]
		t.errors++
	default:
		p.Bytes = t.Bytes[t.bytes : t.bytes+v.N]
		t.bytes += v.N
	}
	return p
}

// Rewind returns a tape that plays what t has. They share it.
func (t *Tape) Rewind() Tape {
	return Tape{Plays: true, Stop: t.Stop, Values: t.Values, Bytes: t.Bytes, Errors: t.Errors, Replies: t.Replies}
}

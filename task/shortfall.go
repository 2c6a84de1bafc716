package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
)

// A Shortfall says what the result of a body lacks. The zero Shortfall says that the result is whole. Immutable.
type Shortfall struct {
	Dropped int   // rows left out because their keys failed
	Err     error // the first failure; nil: the result is whole
	// Malformed says which ids the node could not read; nil: none. They fail no node.
	Malformed *MalformedIDs
}

// MalformedIDs says which entries a node of Redis keys left out because they are not ids. Immutable once told.
type MalformedIDs struct {
	Count, Of  int    // entries that are not ids, and all entries that the node has read
	First, Key string // an excerpt of the first such entry, and of the key that has it
}

// Shortfall returns what the result lacks so far, as the body has said.
func (c *Ctx) Shortfall() Shortfall { return c.env.Rare().shortfall }

// Partial reports whether the body may leave out rows whose keys failed, one by one. The node
// says so by "on_error": "partial", and the request does not require the node. A body that leaves rows out
// calls DropRows. Other bodies, and those that lose the connection, return the error.
func (c *Ctx) Partial() bool { return c.Node.OnError == plan.OnErrorPartial && !c.required() }

// DropRows notes that the body leaves n more rows out because their keys failed. why is the first such error;
// further calls may leave it out. Without leave to do so, see Partial, the node fails with it.
func (c *Ctx) DropRows(n int, why error) {
	c.env.Keep().shortfall.Dropped += n
	c.note(why)
}

// DropKey is for a body that finds a reply of a wrong kind to the command about one row, whose key is prefix+id. With
// leave to do so it counts the row as left out and returns nil. Otherwise it returns the error of Redis.CheckKind.
func (c *Ctx) DropKey(r Redis, reply resp.Reply, want resp.Kind, command, prefix string, id int64) error {
	if !c.Partial() {
		return r.CheckKind(reply, want, command, prefix, id)
	}
	var why error
	if c.Shortfall().Err == nil { // Many keys may fail, and each text costs time on the loop.
		why = r.CheckKind(reply, want, command, prefix, id)
	}
	c.DropRows(1, why)
	return nil
}

// FailOpen notes that the body goes on without something that failed, and that its result stands all the
// same. If the request requires the node, the node fails with why.
func (c *Ctx) FailOpen(why error) { c.note(why) }

// DropIDs notes that the body leaves out entries because they are not ids. It counts them for the key "id". The answer's
// completeness tells, and the engine's log; the node does not fail, nor is its result partial: to read again would not help.
func (c *Ctx) DropIDs(m MalformedIDs) {
	if m.Count > 0 {
		c.CountMalformed("id", m.Count)
		told := m // so that only this branch allocates
		c.env.Keep().shortfall.Malformed = &told
	}
}

func (c *Ctx) note(why error) {
	if shortfall := &c.env.Keep().shortfall; shortfall.Err == nil {
		shortfall.Err = why
	}
}

// mayFallShort reports whether the request takes a result that lacks something.
func (c *Ctx) mayFallShort() bool {
	return c.Partial() || c.Shortfall().Dropped == 0 && !c.required()
}

func (c *Ctx) required() bool {
	r := c.env.Request
	return r != nil && slices.Contains(r.Required, c.Node.Index)
}

package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
)

// A Shortfall says what is missing in the result of a body. The zero Shortfall says that the result is whole.
// Immutable.
type Shortfall struct {
	Dropped int   // rows left out because their keys failed
	Err     error // the first failure; nil: the result is whole
	// Malformed says which ids or values the node could not read; nil: none. They do not fail the node.
	Malformed *MalformedIDs

	service string // no lack: the version of the service that the body has asked. It stands here since few bodies have one
}

// MalformedIDs says which entries of Redis keys a node left out because they are not ids, or which values it took for
// missing because they are none of their column. Immutable once reported.
type MalformedIDs struct {
	Count, Of  int    // entries that are not ids, and all entries that the node has read
	First, Key string // an excerpt of the first such entry, and of the key that has it; of a value, the column's name
	Values     bool   // they are values, which the body has counted for their columns
}

// Shortfall returns what the body has reported so far.
func (c *Ctx) Shortfall() Shortfall {
	if c.env.Shortfall == nil {
		return Shortfall{}
	}
	return *c.env.Shortfall
}

// lacks returns the shortfall, for changing.
func (c *Ctx) lacks() *Shortfall {
	if c.env.Shortfall == nil {
		c.env.Shortfall = new(Shortfall)
	}
	return c.env.Shortfall
}

// Partial reports whether the body may leave out rows whose keys failed, one by one. The node
// says so by "on_error": "partial", and the request does not require the node. A body that leaves rows out
// calls DropRows. Other bodies, and those that lose the connection, return the error.
func (c *Ctx) Partial() bool { return c.Node.OnError == plan.OnErrorPartial && !c.required() }

// DropRows notes that the body leaves out n more rows because their keys failed. why is the first such error; it may
// be nil in further calls. Unless Partial permits it, the node fails with that error.
func (c *Ctx) DropRows(n int, why error) {
	c.lacks().Dropped += n
	c.note(why)
}

// FailOpen notes that the body goes on without something that failed, and that its result is good nevertheless. If
// the request requires the node, the node fails with why.
func (c *Ctx) FailOpen(why error) { c.note(why) }

// DropIDs notes that the body leaves out entries because they are not ids. It counts them for the key "id". The
// answer's completeness and the engine's log report them. Values are told of in the same way. The node does not fail, and its result is not partial,
// because reading again would not help.
func (c *Ctx) DropIDs(m MalformedIDs) {
	if m.Count > 0 {
		if !m.Values {
			c.CountMalformed("id", m.Count)
		}
		told := m // so that only this branch allocates
		c.lacks().Malformed = &told
	}
}

func (c *Ctx) note(why error) {
	if shortfall := c.lacks(); shortfall.Err == nil {
		shortfall.Err = why
	}
}

// mayFallShort reports whether the request accepts a result with a shortfall.
func (c *Ctx) mayFallShort() bool {
	return c.Partial() || c.Shortfall().Dropped == 0 && !c.required()
}

func (c *Ctx) required() bool {
	r := c.env.Request
	return r != nil && slices.Contains(r.Required, c.Node.Index)
}

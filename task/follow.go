package task

import (
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// keyCountry is the one column that is read from users.
const keyCountry registry.KeyID = 3001

// writesCountry returns the Writes of the tasks that make rows of users.
func writesCountry() func(*plan.Node) []registry.KeyID {
	keys := []registry.KeyID{keyCountry}
	return func(*plan.Node) []registry.KeyID { return keys }
}

func follow() Spec {
	return fanOut("core::follow", "follow:", "Expands each row to the users that it follows.")
}

func recommendation() Spec {
	return fanOut("core::recommendation", "recommendation:", "Expands each row to the users recommended to it.")
}

// fanOut expands each row to the ids in the list at prefix+id, then reads each
// of those users. Two round trips, whatever the number of rows, unless readLists takes more.
func fanOut(op, prefix, doc string) Spec {
	users := userCommand()
	body := func(c *Ctx) (rowset.RowSet, error) {
		ids, err := readLists(c, prefix, 10_000_000)
		if err != nil {
			return rowset.RowSet{}, err
		}
		return readUsers(c, users, ids)
	}
	return Spec{
		Op:       op,
		Doc:      doc,
		Params:   []plan.ParamSchema{endpointParam, fanoutParam},
		Inputs:   1,
		IsIO:     true,
		Output:   Expand,
		Writes:   writesCountry(),
		Run:      body,
		RunAsync: body,
	}
}

var (
	endpointParam = plan.ParamSchema{Name: "endpoint", Type: plan.Endpoint, Required: true}
	fanoutParam   = plan.ParamSchema{Name: "fanout", Type: plan.Int, Required: true}
)

// readLists reads, for each active row of the input in order, the first
// "fanout" entries of the list at prefix+id, as one batch, and returns the ids in them.
// Entries that are no id are dropped after that cut, so they use up fan-out.
//
// Each entry counts as a row, and what the request could not take is not read: a list is
// read up to one entry more than the request may still make rows, which is enough to fail, and
// lists that could hold more together than that (or than askedMin) are read by several
// batches, one after the other.
func readLists(c *Ctx, prefix string, fanoutMax int64) ([]int64, error) {
	fanout := c.Node.Params.Int("fanout")
	if fanout < 1 || fanout > fanoutMax {
		return nil, invalidf("fanout is %d, must be between 1 and %d", fanout, fanoutMax)
	}
	in := c.Inputs[0]
	redis := c.Redis(c.Node.Endpoint)
	var ids []int64
	for from, to := 0, 0; from < in.Len(); from = to {
		left := c.rowsLeft()
		most := min(fanout, left+1)
		to = from + int(min(int64(in.Len()-from), max(1, max(left, askedMin)/most)))
		b := redis.NewBatch()
		for i := from; i < to; i++ {
			b.Begin(4)
			b.ArgString("LRANGE")
			b.ArgKey(prefix, in.ID(i))
			b.ArgInt(0)
			b.ArgInt(most - 1)
		}
		replies, err := redis.Send(b)
		if err != nil {
			return nil, err
		}
		entries := 0
		for i := range replies.Len() {
			reply := replies.At(i)
			if err := redis.want(reply, resp.Array, "LRANGE", prefix, in.ID(from+i)); err != nil {
				return nil, err
			}
			entries += reply.Len()
		}
		if err := c.MakeRows(int64(entries)); err != nil {
			return nil, err
		}
		ids = slices.Grow(ids, entries)
		for i := range replies.Len() {
			for entry := range replies.At(i).All() {
				if id, ok := parseID(entry.Bytes()); ok {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, nil
}

// askedMin is how many list entries a fan-out may ask for at once, however few rows its
// request may still make, so that a low bound does not turn into many round trips: as replies
// so many entries are some 1 MB.
const askedMin = 1 << 16

// userCommand is the command that reads one user.
func userCommand() *resp.Template { return resp.NewTemplate("HGETALL", "user:{id}") }

// readUsers makes a batch of these rows with the country column, read from
// user:{id} as one batch. A user without a hash, or without the field, is kept with a null.
func readUsers(c *Ctx, command *resp.Template, ids []int64) (rowset.RowSet, error) {
	redis := c.Redis(c.Node.Endpoint)
	b := redis.NewBatch()
	for _, id := range ids {
		b.CmdID(command, id)
	}
	replies, err := redis.Send(b)
	if err != nil {
		return rowset.RowSet{}, err
	}
	countries := rowset.NewStringBuilder(keyCountry, len(ids))
	for i := range replies.Len() {
		reply := replies.At(i)
		if err := redis.want(reply, resp.Array, "HGETALL", "user:", ids[i]); err != nil {
			return rowset.RowSet{}, err
		}
		if value, ok := hashField(reply, "country"); ok {
			countries.Append(value)
		} else {
			countries.AppendNull()
		}
	}
	// A batch and its list of columns in one piece of memory.
	users := new(struct {
		rowset.Batch
		columns [1]rowset.StringColumn
	})
	users.columns[0] = countries.Column()
	users.IDs, users.Strings = ids, users.columns[:]
	return rowset.Dense(&users.Batch), nil
}

// want refuses a reply that is an error or of another kind than kind.
func (r Redis) want(reply resp.Reply, kind resp.Kind, command, prefix string, id int64) error {
	if reply.Kind() == kind {
		return nil
	}
	if err := reply.Err(); err != nil {
		return r.refusef("%s %s%d: %w", command, prefix, id, err)
	}
	return r.refusef("%s %s%d: reply is %s, want %s", command, prefix, id, reply.Kind(), kind)
}

// hashField returns the value of a field in a reply of HGETALL: field, value,
// field, value.
func hashField(reply resp.Reply, name string) (value []byte, ok bool) {
	for i := 0; i+1 < reply.Len(); i += 2 {
		if string(reply.At(i).Bytes()) == name {
			return reply.At(i + 1).Bytes(), true
		}
	}
	return nil, false
}

// parseID reads the id at the start of a list entry: an optional minus, then
// at least one ASCII digit, as many as there are; what follows is ignored. An
// entry that does not start so, or whose digits do not fit an int64, is none.
func parseID(entry []byte) (id int64, ok bool) {
	negative := len(entry) > 0 && entry[0] == '-'
	digits := entry
	if negative {
		digits = digits[1:]
	}
	var n uint64
	i := 0
	for ; i < len(digits) && '0' <= digits[i] && digits[i] <= '9'; i++ {
		d := uint64(digits[i] - '0')
		if n > (1<<63-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	switch {
	case i == 0, n == 1<<63 && !negative:
		return 0, false
	case negative:
		return int64(-n), true
	default:
		return int64(n), true
	}
}

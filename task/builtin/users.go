package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// countryName names the key of the only column that is read from users, whatever its id.
const countryName = "country"

// preparedUsers is what a node reads from lists and users. Immutable once built; any goroutine.
type preparedUsers struct {
	key   *registry.Key // of the column
	users task.Recall
	lists task.Recall // of follow and recommendation
}

// prepareUsers prepares a node that reads users. It refuses the node if the registry has no key for the column.
func prepareUsers(n *plan.Node, reg *registry.Registry) (*preparedUsers, error) {
	const need = "the task writes the column %[1]q, so the registry must have a nullable key %[1]q of type string; %s"
	key, ok := reg.KeyByName(countryName)
	switch {
	case !ok:
		return nil, fmt.Errorf(need, countryName, "it has no key of that name")
	case key.Type != registry.String:
		return nil, fmt.Errorf(need, countryName, "its key is of type "+key.Type.String())
	case !key.Nullable:
		return nil, fmt.Errorf(need, countryName, "its key is not nullable")
	}
	return &preparedUsers{key: key, users: recallRule(n, "HGETALL "+strconv.Quote(key.Field), userPrefix)}, nil
}

// writesCountry is the Writes of the tasks that read users.
func writesCountry(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	return []registry.KeyID{n.Prepared.(*preparedUsers).key.ID}
}

// userPrefix is how the keys of users begin.
const userPrefix = "user:"

// userCommand returns the command that reads one user.
func userCommand() *resp.Template { return resp.NewTemplate("HGETALL", userPrefix+"{id}") }

// userKeys are the keys of users. Immutable.
type userKeys struct {
	command *resp.Template
	texts   *rowset.IDTexts // the ids, by the numbers in their place; nil: they are integers
}

// ask appends the commands that read users.
func (u userKeys) ask(b *resp.Batch, ids []int64) {
	if u.texts != nil {
		for _, id := range ids {
			b.CmdText(u.command, u.texts.At(id))
		}
		return
	}
	for _, id := range ids {
		b.CmdID(u.command, id)
	}
}

// append appends the key of a user.
func (u userKeys) append(dst []byte, id int64) []byte {
	if dst = append(dst, userPrefix...); u.texts == nil {
		return strconv.AppendInt(dst, id, 10)
	}
	return append(dst, u.texts.At(id)...)
}

// drop leaves out a user whose reply is of the wrong kind, or returns the error.
func (u userKeys) drop(c *task.Ctx, redis task.Redis, reply resp.Reply, id int64) error {
	if u.texts == nil {
		return c.DropKey(redis, reply, resp.Array, "HGETALL", userPrefix, id)
	}
	err := redis.Errorf("HGETALL %s: reply is %s, want %s", task.Quote(string(u.append(nil, id))), reply.Kind(), resp.Array)
	if reply.Err() != nil {
		err = redis.Errorf("HGETALL %s: %w", task.Quote(string(u.append(nil, id))), reply.Err())
	}
	if !c.Partial() {
		return err
	}
	c.DropRows(1, err)
	return nil
}

// usersFanoutMax is the most entries that follow and recommendation read of one list.
const usersFanoutMax = 10_000_000

// fanOut expands each row to the ids in the list at prefix+id, then reads each of those users. It takes two round
// trips, unless there are very many rows.
func fanOut(op, prefix, doc string) task.Spec {
	users := userKeys{command: userCommand()}
	return task.Spec{
		Op:        op,
		Doc:       doc,
		Params:    withRecallParams(endpointParam, fanoutParam(usersFanoutMax)),
		Reference: fanOutReference(op, prefix),
		Inputs:    1,
		Output:    task.Expand,
		Entity:    registry.UserEntity,
		RowsMax:   perRow("fanout"),
		Prepare: func(n *plan.Node, reg *registry.Registry) (any, error) {
			prepared, err := prepareUsers(n, reg)
			if err != nil {
				return nil, err
			}
			prepared.lists = listRule(n, prefix)
			return prepared, nil
		},
		Writes:  writesCountry,
		Place:   task.Waits,
		Forgets: true,
		Partial: true,
		Waves:   2,
		Ask: func(c *task.Ctx, r *task.Reads, wave int) error {
			if wave == 0 {
				return askLists(c, r, prefix, &c.Node.Prepared.(*preparedUsers).lists, usersFanoutMax)
			}
			askUsers(c, r, users, r.At(0).(*listRead).joined())
			return nil
		},
		Make: func(_ *task.Ctx, r *task.Reads) (rowset.RowSet, error) { return r.At(1).(*usersRead).rows(), nil },
	}
}

// askUsers adds the read of the users of these ids. ids are changed.
func askUsers(c *task.Ctx, r *task.Reads, keys userKeys, ids []int64) {
	prepared := c.Node.Prepared.(*preparedUsers)
	u := task.NewRead[usersRead](r)
	u.c, u.keys, u.field, u.ids = c, keys, prepared.key.Field, ids
	u.countries = rowset.NewStringBuilderIn(c.Memory, prepared.key.ID, len(ids))
	r.Add(c, c.Node.Endpoint, &prepared.users, u)
}

// usersRead reads the country column of users from user:{id}. It keeps a user without a hash, or without the field,
// with a null. A user that Redis refuses fails the node, or is left out and counted if the node may be partial. A
// value that is kept is empty for a null, and otherwise the country behind a byte. Only the body uses it.
type usersRead struct {
	c         *task.Ctx
	keys      userKeys
	field     string
	ids       []int64
	countries *rowset.StringBuilder
	column    *rowset.StringColumn // of countries, once all users were taken
	refused   []int                // positions in ids, ascending
}

// Keys implements task.Read.
func (u *usersRead) Keys() int { return len(u.ids) }

// Batch implements task.Read.
func (u *usersRead) Batch(from int) int { return nextBatch(from, len(u.ids)) }

// Key implements task.Read.
func (u *usersRead) Key(dst []byte, k int) []byte { return u.keys.append(dst, u.ids[k]) }

// Ask implements task.Read.
func (u *usersRead) Ask(b *resp.Batch, from, to int) { u.keys.ask(b, u.ids[from:to]) }

// Take implements task.Read.
func (u *usersRead) Take(replies resp.Replies, at, to, _ int) (next int, err error) {
	countries, field := u.countries, u.field
	for ; at < to; at++ {
		reply := replies.At(at)
		if reply.Kind() != resp.Array {
			break
		}
		if value, ok := task.HashField(reply, field); ok {
			countries.Append(value)
		} else {
			countries.AppendNull()
		}
	}
	return at, nil
}

// Refuse implements task.Read.
func (u *usersRead) Refuse(reply resp.Reply, k int) error {
	u.refused = append(u.refused, k)
	return u.keys.drop(u.c, u.c.Redis(u.c.Node.Endpoint), reply, u.ids[k])
}

// Encode implements task.Read.
func (u *usersRead) Encode(dst []byte, k int) ([]byte, bool) {
	before, _ := slices.BinarySearch(u.refused, k)
	column, row := u.built(), k-before
	if column.Codes[row] == rowset.NullCode {
		return dst, true
	}
	return appendKept(dst, valueThere, column, row), true
}

// Decode implements task.Read.
func (u *usersRead) Decode(value []byte, _ int) error {
	if len(value) > 0 {
		u.countries.AppendBinary(value[1:])
	} else {
		u.countries.AppendNull()
	}
	return nil
}

// built returns the column. No user is taken any more.
func (u *usersRead) built() *rowset.StringColumn {
	if u.column == nil {
		u.column = u.countries.Column().(*rowset.StringColumn)
	}
	return u.column
}

// rows returns the users that were taken.
func (u *usersRead) rows() rowset.RowSet {
	return rowset.Dense(rowset.NewBatch(leaveOut(u.ids, u.refused), u.built()))
}

// leaveOut returns ids without those at some positions, which ascend. It uses the memory of ids.
func leaveOut(ids []int64, positions []int) []int64 {
	for k, at := range positions {
		end := len(ids)
		if k+1 < len(positions) {
			end = positions[k+1]
		}
		copy(ids[at-k:], ids[at+1:end])
	}
	return ids[:len(ids)-len(positions)]
}

const (
	countryWrites = "The column of the key `country`, which the registry must have, of type string and nullable. "
	countryNulls  = "`country` is null for a user without a hash, or without the field. An empty text is a value."
)

func fanOutReference(op, prefix string) task.Reference {
	r := listReference(prefix, "Then one `HGETALL` of `user:{id}` for each new row, all in a second round trip.")
	r.Writes = countryWrites + "Its value comes from the hash of each new row."
	r.Nulls = countryNulls + " Such a row stays."
	r.Example.Plan = "ctx.viewer({ endpoint: redis })." + strings.TrimPrefix(op, "core::") + "({ endpoint: redis, fanout: 3 })"
	return r
}

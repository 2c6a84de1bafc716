package builtin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rankd/rankd/internal/taskrun"
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
	users taskrun.RecallRule
	lists taskrun.RecallRule // of follow and recommendation
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
	return tasks.Recalls(task.Spec{
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
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			ids, err := readLists(c, prefix, &c.Node.Prepared.(*preparedUsers).lists, usersFanoutMax)
			if err != nil {
				return rowset.RowSet{}, err
			}
			return readUsers(c, users, ids)
		},
	})
}

// readUsers makes a batch of these rows with the country column, read from
// user:{id} in batches of task.PartCommands. It keeps a user without a hash, or without the field, with a null. A user
// that Redis refuses fails the node, or is left out and counted if the node may be partial. ids are changed then.
func readUsers(c *task.Ctx, keys userKeys, ids []int64) (rowset.RowSet, error) {
	redis := c.Redis(c.Node.Endpoint)
	prepared := c.Node.Prepared.(*preparedUsers)
	key, recall := prepared.key, tasks.Recall(c, c.Node.Endpoint, &prepared.users)
	countries := rowset.NewStringBuilderIn(c.Memory, key.ID, len(ids))
	var refused []int // positions in ids, ascending
	for from := 0; from < len(ids); from += task.PartCommands {
		b, to := redis.NewBatch(), min(len(ids), from+task.PartCommands)
		if recall != nil {
			users := keptUsers{c: c, redis: redis, keys: keys, field: key.Field, ids: ids, countries: countries}
			if err := recallKeys(c, redis, recall, keyReads{users.key, users.ask, users.encode, users.refuse, users.take}, b, from, to); err != nil {
				return rowset.RowSet{}, err
			}
			refused = append(refused, users.refused...)
			continue
		}
		keys.ask(b, ids[from:to])
		parts := redis.Parts(b)
		for parts.Next() {
			replies := parts.Replies()
			for i := takeCountries(countries, key.Field, replies, 0); i < replies.Len(); i = takeCountries(countries, key.Field, replies, i+1) {
				at := from + parts.From() + i
				if err := keys.drop(c, redis, replies.At(i), ids[at]); err != nil {
					return rowset.RowSet{}, err
				}
				refused = append(refused, at)
			}
		}
		if err := parts.Err(); err != nil {
			return rowset.RowSet{}, err
		}
	}
	return rowset.Dense(rowset.NewBatch(leaveOut(ids, refused), countries.Column())), nil
}

// keptUsers are users as keyReads. A value is empty for a null, and otherwise the country behind a byte. Only the body uses it.
type keptUsers struct {
	c         *task.Ctx
	redis     task.Redis
	keys      userKeys
	field     string
	ids       []int64
	countries *rowset.StringBuilder
	refused   []int // positions in ids, ascending
}

func (u *keptUsers) key(dst []byte, k int) []byte {
	return u.keys.append(dst, u.ids[k])
}

func (u *keptUsers) ask(b *resp.Batch, k int) { u.keys.ask(b, u.ids[k:k+1]) }

func (u *keptUsers) encode(dst []byte, reply resp.Reply) ([]byte, bool) {
	if reply.Kind() != resp.Array {
		return dst, false
	}
	if value, ok := task.HashField(reply, u.field); ok {
		dst = append(append(dst, valueThere), value...)
	}
	return dst, true
}

func (u *keptUsers) refuse(reply resp.Reply, k int) error {
	u.refused = append(u.refused, k)
	return u.keys.drop(u.c, u.redis, reply, u.ids[k])
}

func (u *keptUsers) take(values *taskrun.Values) error {
	for _, value := range values.All {
		if len(value) > 0 {
			u.countries.Append(value[1:])
		} else {
			u.countries.AppendNull()
		}
	}
	return nil
}

// takeCountries appends that field of users from reply i on, up to the next reply that is a refusal. It returns the
// position of that reply, or the number of replies.
func takeCountries(countries *rowset.StringBuilder, field string, replies resp.Replies, i int) int {
	for ; i < replies.Len(); i++ {
		reply := replies.At(i)
		if reply.Kind() != resp.Array {
			break
		}
		if value, ok := task.HashField(reply, field); ok {
			countries.Append(value)
		} else {
			countries.AppendNull()
		}
	}
	return i
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

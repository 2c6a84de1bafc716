package builtin

import (
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// keyCountry is the one column that is read from users.
const keyCountry registry.KeyID = 3001

// userCommand returns the command that reads one user.
func userCommand() *resp.Template { return resp.NewTemplate("HGETALL", "user:{id}") }

// usersFanoutMax is the most entries that follow and recommendation read of one list.
const usersFanoutMax = 10_000_000

// fanOut expands each row to the ids in the list at prefix+id, then reads each
// of those users. Two round trips, unless there are very many rows.
func fanOut(op, prefix, doc string) task.Spec {
	users := userCommand()
	return task.Spec{
		Op:        op,
		Doc:       doc,
		Params:    []plan.ParamSchema{endpointParam, fanoutParam(usersFanoutMax)},
		Reference: fanOutReference(op, prefix),
		Inputs:    1,
		Output:    task.Expand,
		Writes:    task.Columns(keyCountry),
		Place:     task.Waits,
		Forgets:   true,
		Partial:   true,
		Run: func(c *task.Ctx) (rowset.RowSet, error) {
			ids, err := readLists(c, prefix, usersFanoutMax)
			if err != nil {
				return rowset.RowSet{}, err
			}
			return readUsers(c, users, ids)
		},
	}
}

// readUsers makes a batch of these rows with the country column, read from
// user:{id} in batches of task.PartCommands. It keeps a user without a hash, or without the field, with a null. A user
// that Redis refuses fails the node, or is left out and counted if the node may be partial. ids are changed then.
func readUsers(c *task.Ctx, command *resp.Template, ids []int64) (rowset.RowSet, error) {
	redis := c.Redis(c.Node.Endpoint)
	countries := rowset.NewStringBuilderIn(c.Memory, keyCountry, len(ids))
	var refused []int // positions in ids, ascending
	for from := 0; from < len(ids); from += task.PartCommands {
		b := redis.NewBatch()
		for _, id := range ids[from:min(len(ids), from+task.PartCommands)] {
			b.CmdID(command, id)
		}
		parts := redis.Parts(b)
		for parts.Next() {
			replies := parts.Replies()
			for i := takeCountries(&countries, replies, 0); i < replies.Len(); i = takeCountries(&countries, replies, i+1) {
				at := from + parts.From() + i
				if err := c.DropKey(redis, replies.At(i), resp.Array, "HGETALL", "user:", ids[at]); err != nil {
					return rowset.RowSet{}, err
				}
				refused = append(refused, at)
			}
		}
		if err := parts.Err(); err != nil {
			return rowset.RowSet{}, err
		}
	}
	return rowset.Dense(rowset.NewStrings(leaveOut(ids, refused), countries.Column())), nil
}

// takeCountries appends the countries of users from reply i on, up to the next one that Redis refused. It returns the
// position of that, or the number of replies.
func takeCountries(countries *rowset.StringBuilder, replies resp.Replies, i int) int {
	for ; i < replies.Len(); i++ {
		reply := replies.At(i)
		if reply.Kind() != resp.Array {
			break
		}
		if value, ok := task.HashField(reply, "country"); ok {
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

const countryNulls = "`country` is null for a user without a hash, or without the field. An empty text is a value."

func fanOutReference(op, prefix string) task.Reference {
	r := listReference(prefix, "Then one `HGETALL` of `user:{id}` for each new row, all in a second round trip.")
	r.Writes = "`country`, from the hash of each new row."
	r.Nulls = countryNulls + " Such a row stays."
	r.Example.Plan = "ctx.viewer({ endpoint: redis })." + strings.TrimPrefix(op, "core::") + "({ endpoint: redis, fanout: 3 })"
	return r
}

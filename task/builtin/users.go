package builtin

import (
	"fmt"
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
	key     task.RedisKey  // of a user
	country preparedLookup // of its hash
	lists   preparedLists  // of follow and recommendation
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
	return &preparedUsers{key: tasks.RowKey(userPrefix), country: preparedLookup{
		keys: []*registry.Key{key}, kind: &userKind, missing: missingNull, command: userKind.keyCommand(userPrefix, "", nil),
		recall: recallRule(n, userKind.shape([]*registry.Key{key}), userPrefix),
	}}, nil
}

// writesCountry is the Writes of the tasks that read users.
func writesCountry(n *plan.Node, _ *registry.Registry) []registry.KeyID {
	return []registry.KeyID{n.Prepared.(*preparedUsers).country.keys[0].ID}
}

// userPrefix is how the keys of users begin.
const userPrefix = "user:"

// userKind is how users are read: their hashes with all fields.
var userKind = lookupKind{command: "HGETALL", reply: resp.Array, fields: true}

// usersFanoutMax is the most entries that follow and recommendation read of one list.
const usersFanoutMax = 10_000_000

// fanOut expands each row to the ids in the list at prefix+id, then reads each of those users. It takes two round
// trips, unless there are very many rows.
func fanOut(op, prefix, doc string) task.Spec {
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
			prepared.lists = prepareLists(n, prefix)
			return prepared, nil
		},
		Writes:  writesCountry,
		Place:   task.Waits,
		Forgets: true,
		Partial: true,
		Waves:   2,
		Ask: func(c *task.Ctx, r *task.Reads, wave int) error {
			prepared := c.Node.Prepared.(*preparedUsers)
			if wave == 0 {
				return prepared.lists.ask(c, r, usersFanoutMax)
			}
			prepared.ask(c, r, r.At(0).(*entriesRead).joined(), nil)
			return nil
		},
		Make: func(c *task.Ctx, r *task.Reads) (rowset.RowSet, error) { return usersOf(c, r.At(1).(*lookupDecoder)) },
	}
}

// ask adds the read of the users of these ids, which are numbers of texts if there are such. A user without a hash, or without the
// field, has a null. One that Redis refuses fails the node, or is left out and counted if the node may be partial.
func (p *preparedUsers) ask(c *task.Ctx, r *task.Reads, ids []int64, texts *rowset.IDTexts) {
	d := task.NewRead[lookupDecoder](r)
	d.preparedLookup, d.c, d.command = &p.country, c, p.country.command
	if d.key, d.ids.values = p.key, ids; texts != nil { // As they come: each row reads its user.
		d.key = d.key.OfTexts(texts)
	}
	d.memo = r.Add(c, c.Node.Endpoint, &p.country.recall, d)
}

// usersOf returns the users that were read.
func usersOf(c *task.Ctx, d *lookupDecoder) (rowset.RowSet, error) {
	columns, err := d.end()
	if err != nil {
		return rowset.RowSet{}, err
	}
	out := rowset.Dense(rowset.NewBatch(d.ids.values, columns...))
	if d.failed != nil { // Some rows are left out.
		out = d.result(out, columns)
		out = rowset.Dense(rowset.Gather(c.Memory, out.Batch, out.Rows))
	}
	return out, nil
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

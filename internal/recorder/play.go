package recorder

import (
	"fmt"

	"github.com/rankd/rankd/internal/taskrun"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/trace/record"

	"github.com/rankd/rankd/registry"
)

// Tapes returns tapes that play a run of a plan.
func Tapes(run *record.Run, g *plan.Graph) ([]taskrun.Tape, error) {
	if len(run.Nodes) != len(g.Nodes) || run.Digest != g.Digest {
		return nil, fmt.Errorf("the request has run plan %s with the digest %.12s, and this one has %.12s", run.Plan, run.Digest, g.Digest)
	}
	tapes := make([]taskrun.Tape, len(run.Nodes))
	for i := range tapes {
		if err := play(&tapes[i], &run.Nodes[i], run.Failure); err != nil {
			return nil, fmt.Errorf("node %s: %w", run.Nodes[i].ID, err)
		}
	}
	return tapes, nil
}

// play makes t play what a node got. failed is why its run has failed; nil: it has not.
func play(t *taskrun.Tape, n *record.Node, failed *record.Failure) error {
	t.Plays = true
	switch {
	case n.End == record.Stopped && (failed == nil || failed.Node != ""):
		t.Stop = errorOf(n.Failure)
	case n.End == record.Stopped || n.End == record.NotRun && failed != nil: // Nobody knows what it would have got.
		t.Stop = errorOf(failed)
	}
	replies := 0
	for _, v := range n.Values {
		if v.Kind == record.Reply {
			replies++
		}
	}
	decoder, at := resp.NewDecoder(resp.Limits{}), 0
	for _, v := range n.Values {
		tape := taskrun.TapeValue{Kind: taskrun.TapeKind(v.Kind), N: len(v.Bytes)}
		switch v.Kind {
		case record.Reply:
			tape.N = 1
			if v.Failure != nil {
				t.Replies.Fail(at, replies, errorOf(v.Failure))
			} else {
				decoder.Reset(1)
				size, done, err := decoder.Decode(v.Bytes)
				if err != nil || !done || size != len(v.Bytes) {
					return fmt.Errorf("reply %d of the record is malformed: %v", at, err)
				}
				t.Replies.Set(at, replies, decoder.Replies().At(0))
			}
			at++
		case record.Broken:
			t.Errors = append(t.Errors, errorOf(v.Failure))
		case record.Call, record.Memory, record.Body:
			t.Bytes = append(t.Bytes, v.Bytes...)
		default:
			return fmt.Errorf("the record has a value of kind %d", v.Kind)
		}
		t.Values = append(t.Values, tape)
	}
	return nil
}

// RunResidents are resident rows of records as a request reads them. They implement taskrun.Residents. Immutable; any goroutine.
type RunResidents struct {
	Of  map[string]*taskrun.Resident
	IDs *rowset.IDDict // of all text ids; nil: there are none
}

// Resident implements taskrun.Residents.
func (r *RunResidents) Resident(plan string) (*taskrun.Resident, error) {
	if kept := r.Of[plan]; kept != nil {
		return kept, nil
	}
	return nil, fmt.Errorf("the record has no rows of plan %s", plan)
}

// NewResidents makes the rows of plans that a request reads. entity returns the entity of a plan's rows.
func NewResidents(recorded []*record.Resident, reg *registry.Registry, entity func(plan string) *registry.Entity) (*RunResidents, error) {
	all := &RunResidents{Of: make(map[string]*taskrun.Resident, len(recorded))}
	for _, r := range recorded {
		if digestOf(&r.Rows) != r.Digest {
			return nil, fmt.Errorf("the resident rows of plan %s are not those of their digest", r.Plan)
		}
		kept := &taskrun.Resident{Entity: entity(r.Plan)}
		ids, err := decode(r.Rows.IDs.Values, r.Rows.N, registry.IDKey)
		if err != nil {
			return nil, err
		}
		var columns []rowset.Column
		for _, c := range r.Rows.Columns {
			key, ok := reg.KeyByName(c.Name)
			if !ok {
				return nil, fmt.Errorf("the resident rows of plan %s have the column %s, which the tables lack", r.Plan, c.Name)
			}
			column, err := decode(c.Values, r.Rows.N, key.ID)
			if err != nil {
				return nil, err
			}
			columns = append(columns, column)
		}
		var numbers []int64
		switch ids := ids.(type) {
		case *rowset.IntColumn:
			numbers = ids.Values
		case *rowset.StringColumn:
			if all.IDs == nil {
				all.IDs = rowset.NewIDDict()
			}
			for row := range r.Rows.N {
				text, _ := ids.Value(row)
				if numbers, err = all.IDs.Number(numbers, []byte(text)); err != nil {
					return nil, err
				}
			}
			kept.IDs = all.IDs
		default:
			return nil, fmt.Errorf("the resident rows of plan %s have ids of a wrong type", r.Plan)
		}
		kept.Rows = rowset.Dense(rowset.NewBatch(numbers, columns...))
		all.Of[r.Plan] = kept
	}
	return all, nil
}

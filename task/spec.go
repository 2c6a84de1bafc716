package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A Body is the code of a task. It reads its inputs from c, changes none of
// them, and returns a row set of the shape that its Spec promises.
type Body func(c *Ctx) (rowset.RowSet, error)

// Spec describes a task. Immutable once registered; any goroutine.
type Spec struct {
	// Op is the name with its namespace: "core::vm". Plans may also write the
	// part after "::" alone.
	Op string
	// Doc is one sentence, for --list-tasks and the like.
	Doc string
	// Params is the schema of the node's parameters; "trace" is added to every op.
	Params []plan.ParamSchema
	// Inputs is the number of inputs that a node must list: 0 or 1. It is
	// checked when the node runs. Node references count as parameters.
	Inputs int
	// IsIO says that Run blocks on I/O, so a pool engine puts it on its I/O
	// workers.
	IsIO bool
	// Output is the shape of the result, checked after every run. A violation fails the
	// node with ErrContract.
	Output Output
	// Writes tells the columns that a node may add to its inputs' columns or
	// replace (for Source and Expand: the columns of its result); a column of the result that
	// is neither there nor inherited fails the check. Reads tells those that it reads. It is
	// information for tools: nothing keeps a body from reading others. Nil means none.
	Reads, Writes func(n *plan.Node) []registry.KeyID
	// Run is the synchronous body: on the CPU pool, or on a blocking engine's
	// goroutine. Required.
	Run Body
	// RunAsync is the body on the loop: it may await. Optional; usually equal to Run.
	RunAsync Body
	// Computes tells how many rows a node makes without awaiting anything. A node that makes
	// many runs on the CPU pool, by Run, although it has RunAsync. Nil: the body awaits, or
	// computes next to nothing.
	Computes func(n *plan.Node) int64
}

// Registry finds tasks by name. Immutable once built; any goroutine. It
// implements plan.Ops.
type Registry struct {
	entries map[string]*entry
	specs   []*Spec
}

// entry pairs a spec with what plan validation needs of it. A node carries a
// pointer to the schema, and the schema leads back here.
type entry struct {
	schema plan.OpSchema
	spec   *Spec
}

// NewRegistry returns a registry of these tasks. An incomplete or ambiguous
// spec is an error, all of them reported at once.
func NewRegistry(specs ...Spec) (*Registry, error) {
	r := &Registry{entries: make(map[string]*entry)}
	var problems []string
	add := func(name string, e *entry) {
		if _, taken := r.entries[name]; taken {
			problems = append(problems, fmt.Sprintf("%s: name %q is taken", e.spec.Op, name))
			return
		}
		r.entries[name] = e
	}
	for _, s := range specs {
		spec := &s
		space, bare, ok := strings.Cut(spec.Op, "::")
		switch {
		case !ok || space == "" || bare == "":
			problems = append(problems, fmt.Sprintf("%q: an op is named namespace::name", spec.Op))
		case spec.Run == nil:
			problems = append(problems, spec.Op+": Run is missing")
		case spec.Inputs < 0 || spec.Inputs > 1:
			problems = append(problems, spec.Op+": Inputs must be 0 or 1")
		case spec.Output == 0:
			problems = append(problems, spec.Op+": Output is missing")
		case spec.IsIO && spec.Computes != nil:
			problems = append(problems, spec.Op+": Computes is for tasks without I/O")
		}
		e := &entry{spec: spec}
		e.schema = plan.OpSchema{Op: spec.Op, Params: spec.Params, Impl: spec}
		add(spec.Op, e)
		if ok {
			add(bare, e)
		}
		r.specs = append(r.specs, spec)
	}
	if problems != nil {
		return nil, fmt.Errorf("task registry: %s", strings.Join(problems, "; "))
	}
	slices.SortFunc(r.specs, func(a, b *Spec) int { return strings.Compare(a.Op, b.Op) })
	return r, nil
}

// Builtin returns the registry of the twelve tasks that rankd comes with.
func Builtin() *Registry {
	r, err := NewRegistry(BuiltinSpecs()...)
	if err != nil {
		panic(err) // a fault of this package, caught by its tests
	}
	return r
}

// BuiltinSpecs lists the twelve tasks, to be registered with others beside
// them. A new task of the house is one file and one line here.
func BuiltinSpecs() []Spec {
	return []Spec{
		viewer(),
		follow(),
		recommendation(),
		media(),
		vm(),
		filter(),
		sortRows(),
		take(),
		concat(),
		sleep(),
		fixedSource(),
		busyCPU(),
	}
}

// OpSchema implements plan.Ops.
func (r *Registry) OpSchema(op string) (*plan.OpSchema, bool) {
	e, ok := r.entries[op]
	if !ok {
		return nil, false
	}
	return &e.schema, true
}

// Specs returns all tasks, ascending by name. Not to be changed.
func (r *Registry) Specs() []*Spec { return r.specs }

// SpecOf returns the spec of a node whose plan was loaded with a Registry.
func SpecOf(n *plan.Node) *Spec { return n.Schema.Impl.(*Spec) }

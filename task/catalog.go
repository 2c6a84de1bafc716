package task

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rankd/rankd/plan"
)

// Catalog finds tasks by name. Immutable once built; any goroutine. It
// implements plan.Ops.
type Catalog struct {
	entries map[string]*entry
	specs   []*Spec
}

// entry pairs a spec with what plan validation needs of it. A node carries a
// pointer to the schema, and the schema leads back to the spec.
type entry struct {
	schema plan.OpSchema
	spec   *Spec
}

// opWord matches the namespace and the name of an op.
var opWord = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// NewCatalog returns a catalog of these tasks, for tests: each run checks the result, and that the body has not written into
// its inputs. The error reports every incomplete or ambiguous spec at once.
func NewCatalog(specs ...Spec) (*Catalog, error) { return newCatalog(nil, specs, true) }

func newCatalog(trusted, specs []Spec, inputs bool) (*Catalog, error) {
	c := &Catalog{entries: make(map[string]*entry)}
	var problems []string
	add := func(name string, e *entry) {
		if _, taken := c.entries[name]; taken {
			problems = append(problems, fmt.Sprintf("%s: name %q is taken", e.spec.Op, name))
			return
		}
		c.entries[name] = e
	}
	for i, s := range slices.Concat(trusted, specs) {
		spec := &s
		spec.unchecked, spec.guardsInputs = i < len(trusted), inputs
		space, bare, ok := strings.Cut(spec.Op, "::")
		switch {
		case !ok || !opWord.MatchString(space) || !opWord.MatchString(bare):
			problems = append(problems, fmt.Sprintf("%q: an op is named namespace::name, each of letters, digits and _", spec.Op))
		case (spec.Run == nil) == (spec.Make == nil) || (spec.Ask == nil) != (spec.Make == nil):
			problems = append(problems, spec.Op+": Run must be there, or Ask and Make")
		case spec.Waves < 0 || spec.Waves > 4:
			problems = append(problems, spec.Op+": Waves must be 0 to 4")
		case spec.Make != nil && spec.Place != Waits:
			problems = append(problems, spec.Op+": Ask and Make are for tasks whose Place is Waits")
		case spec.Inputs < 0 || spec.inputsMax() < spec.Inputs || spec.inputsMax() > InputsLimit:
			problems = append(problems, fmt.Sprintf("%s: Inputs must be 0 to InputsMax, and that %d at most", spec.Op, InputsLimit))
		case spec.Output == Source && spec.inputsMax() > 0:
			problems = append(problems, spec.Op+": a task whose Output is Source has no inputs: for rows made of others there is Expand")
		case spec.Output == 0:
			problems = append(problems, spec.Op+": Output is missing")
		case spec.Place > OnLoop:
			problems = append(problems, spec.Op+": Place must be Computes, Waits or OnLoop")
		case spec.Cost != nil && spec.Place != OnLoop:
			problems = append(problems, spec.Op+": Cost is for tasks whose Place is OnLoop")
		case spec.Limited && spec.Output != Permutation && spec.Output != Pick:
			problems = append(problems, spec.Op+": Limited is for tasks whose Output is Permutation or Pick")
		case spec.Expensive && (spec.Inline || spec.Cheap || spec.Place == OnLoop):
			problems = append(problems, spec.Op+": Expensive excludes Inline, Cheap and Place OnLoop")
		case spec.ExpensiveNode != nil && spec.Place != Computes:
			problems = append(problems, spec.Op+": ExpensiveNode is for tasks whose Place is Computes")
		case spec.Partial && !slices.Contains([]Output{Source, Expand, Subset, Pick, Merge}, spec.Output):
			problems = append(problems, spec.Op+": Partial is for tasks whose Output may have fewer rows: Source, Expand, Subset, Pick or Merge")
		case spec.Place == Waits && (spec.Inline || spec.Cheap || spec.Expensive):
			problems = append(problems, spec.Op+": Inline, Cheap and Expensive are for tasks that do not wait")
		}
		for _, problem := range spec.paramProblems() {
			problems = append(problems, spec.Op+": "+problem)
		}
		e := &entry{spec: spec, schema: spec.schema()}
		add(spec.Op, e)
		if ok {
			add(bare, e)
		}
		c.specs = append(c.specs, spec)
	}
	if problems != nil {
		return nil, fmt.Errorf("task catalog: %s", strings.Join(problems, "; "))
	}
	slices.SortFunc(c.specs, func(a, b *Spec) int { return strings.Compare(a.Op, b.Op) })
	return c, nil
}

// OpSchema implements plan.Ops.
func (c *Catalog) OpSchema(op string) (*plan.OpSchema, bool) {
	e, ok := c.entries[op]
	if !ok {
		return nil, false
	}
	return &e.schema, true
}

// Specs returns all tasks, ascending by name. The caller must not change them.
func (c *Catalog) Specs() []*Spec { return c.specs }

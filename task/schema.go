package task

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
)

// InputsLimit is the highest InputsMax of a Spec.
const InputsLimit = 256

// InputsOption is the name that plans in TypeScript give to the inputs after the first, so no parameter
// of a task of several inputs may have it.
const InputsOption = "with"

// inputsMax returns the most inputs of a node.
func (s *Spec) inputsMax() int {
	if s.InputsMax == 0 {
		return s.Inputs
	}
	return s.InputsMax
}

// schema returns what package plan needs to know.
func (s *Spec) schema() plan.OpSchema {
	return plan.OpSchema{
		Op: s.Op, Params: s.Params, Impl: s,
		Strict: plan.IsStrict(s.Strict, s.Params), InputsMin: s.Inputs, InputsMax: s.inputsMax(), Prepare: s.Prepare, Entity: s.Entity, IDs: s.IDs, OfRequest: s.OfRequest,
		Reads: s.Reads, RefReads: s.RefReads, Writes: s.Writes, Inherits: s.Output.inherits(),
		Partial: s.Partial, KeepsRows: s.keepsRows(), RowsMax: s.rowsMax(), TakesMost: s.TakesMost, AsksOf: s.AsksOf,
		Outside: s.Place == Waits, ChoosesBy: s.choosesBy(), Across: s.Across, Pages: s.pages(),
		Scores: s.Scores, Cuts: s.cuts(),
		AddsColumns: s.Writes != nil && (s.Output == SameRows || s.Output == Pick),
	}
}

// cuts reports whether a node leaves out all but some number of rows.
func (s *Spec) cuts() bool {
	return s.Output == Prefix || s.Output == Window || s.Output == Pick && s.hasInt("count")
}

// choosesBy returns the ChoosesBy of the schema: what a node reads, if it may drop rows by that.
func (s *Spec) choosesBy() plan.ColumnsOf {
	if s.ChoosesBy != nil || s.Output != Subset && s.Output != Pick || s.cuts() || s.Reads == nil {
		return s.ChoosesBy
	}
	return func(n *plan.Node, reg *registry.Registry) []registry.KeyID {
		if s.KeepsRows != nil && s.KeepsRows(n) {
			return nil
		}
		return s.Reads(n, reg)
	}
}

// pages reports whether a node gives out a page, as take does.
func (s *Spec) pages() bool {
	return s.Output == Window && s.hasInt("offset") && s.hasInt("count")
}

// hasInt reports whether a node has such an integer.
func (s *Spec) hasInt(name string) bool {
	return slices.ContainsFunc(s.Params, func(p plan.ParamSchema) bool { return p.Name == name && p.Type == plan.Int && !p.List })
}

// rowsMax returns the RowsMax of the schema.
func (s *Spec) rowsMax() func(n *plan.Node, in int64) int64 {
	if s.RowsMax == nil && (s.Output == Source || s.Output == Expand) {
		return func(*plan.Node, int64) int64 { return plan.Unbounded }
	}
	return s.RowsMax
}

// keepsRows returns the KeepsRows of the schema.
func (s *Spec) keepsRows() func(n *plan.Node) bool {
	if s.Output == SameRows || s.Output == PassThrough {
		return func(*plan.Node) bool { return true }
	}
	return s.KeepsRows
}

// inherits says which columns a result of this shape has besides the Spec's Writes.
func (o Output) inherits() plan.Inheritance {
	switch o {
	case Source, Expand:
		return plan.InheritsNothing
	case Append, Merge:
		return plan.InheritsAll
	default:
		return plan.InheritsInputs
	}
}

// paramProblems returns what is wrong with the schema of the parameters.
func (s *Spec) paramProblems() []string {
	problems := problemsOf(s.Params, "")
	for i := range s.Params {
		if s.inputsMax() > 1 && s.Params[i].Name == InputsOption {
			problems = append(problems, "parameter "+InputsOption+": plans write the further inputs so")
		}
	}
	return problems
}

// problemsOf checks parameters, or the fields of an Object; path is what stands before their names.
func problemsOf(params []plan.ParamSchema, path string) (problems []string) {
	for i := range params {
		p := &params[i]
		name := path + p.Name
		fault := func(format string, args ...any) {
			problems = append(problems, "parameter "+name+": "+fmt.Sprintf(format, args...))
		}
		switch {
		case p.Type == 0 || p.Type > plan.Object:
			fault("Type is missing")
		case p.Type == plan.Enum && len(p.Source.OneOf) == 0:
			fault("an Enum needs Source.OneOf")
		case p.IsKey && p.Type != plan.Int:
			fault("IsKey is for an Int")
		case p.List && p.IsKey:
			fault("a List of keys has type Key")
		case p.PerRequest && (p.Type != plan.Int || p.IsKey || p.List || path != ""):
			fault("PerRequest is for an Int that is neither a key, nor in a List or an Object")
		case p.Argument && p.Type != plan.Template:
			fault("Argument is for a Template")
		case p.IsParam && (p.Type != plan.Int || p.IsKey || p.List || p.PerRequest || len(p.Source.ParamTypes) == 0):
			fault("IsParam is for an Int with Source.ParamTypes")
		case p.MinItems < 0 || p.MaxItems < 0 || p.MaxItems > plan.MaxItemsLimit || p.MaxItems > 0 && p.MaxItems < p.MinItems:
			fault("MinItems and MaxItems must be 0 to %d", plan.MaxItemsLimit)
		case !p.List && (p.MinItems > 0 || p.MaxItems > 0):
			fault("MinItems and MaxItems are for a List")
		case p.Type != plan.Object && len(p.Fields) > 0:
			fault("Fields are for an Object")
		case p.Type == plan.Object && (len(p.Fields) == 0 || len(p.Fields) > plan.MaxFields):
			fault("an Object has 1 to %d Fields", plan.MaxFields)
		case p.Type == plan.Object && path != "":
			fault("an Object holds no Object")
		}
		problems = append(problems, problemsOf(p.Fields, name+".")...)
	}
	return problems
}

package plan

import (
	"strings"

	"github.com/rankd/rankd/registry"
)

// ParamType is the type of a node parameter.
type ParamType uint8

// The types of node parameters. Load checks a value of the types from Float on completely; it
// leaves ranges of the others to the task, unless the op is strict.
const (
	Int      ParamType = iota + 1 // integer literal, or a float literal with an integral value
	Bool                          // true or false
	String                        // string
	Endpoint                      // id of an endpoint
	ExprID                        // key of expr_table
	PredID                        // key of pred_table
	NodeRef                       // node id; a dependency like an input
	Float                         // finite number
	Key                           // name or id of a key in the registry
	Enum                          // one of the strings of SourceRule.OneOf
	Template                      // text of a KeyTemplate
	Object                        // object with the members of ParamSchema.Fields
)

// Bounds of parameters whose schema states none.
const (
	DefaultMaxItems = 1024    // of a List
	MaxItemsLimit   = 1 << 16 // that a schema may state
	MaxTextBytes    = 4 << 10 // of a String of a strict op
	MaxFields       = 32      // of an Object
)

// ParamSchema describes one parameter of an op. Immutable once built; any goroutine.
type ParamSchema struct {
	Name     string
	Type     ParamType
	Required bool // Load refuses an absent or null value
	IsEntity bool // a String that names the entity of the node's rows
	IsPlan   bool // a String that names another plan, whose rows the engine keeps for the node: see Graph.Resident
	IsKey    bool // an Int that is a key id; Load refuses ids above 2^32-1
	IsParam  bool // an Int that is the id of a parameter of the registry: see Source.ParamTypes
	// IsMissing says that an Enum names what becomes of a value that the node does not find: MissingDefault, MissingFail and others.
	IsMissing bool
	// PerRequest says that each request may give the value of an Int: the plan then has a RequestInt. The body reads
	// it with task.Ctx.Int.
	PerRequest bool
	IntValue   int64   // default of an optional Int
	FloatValue float64 // default of an optional Float
	BoolValue  bool    // default of an optional Bool
	StrValue   string  // default of an optional String, Enum, Key or Template; "" is none
	// A List defaults to an empty one.

	// List makes the parameter an array of MinItems to MaxItems values of the type. MaxItems 0 stands
	// for DefaultMaxItems.
	List               bool
	MinItems, MaxItems int
	// Fields are the members of an Object. None of them is an Object.
	Fields []ParamSchema
	// Columns says that the marks of a Template may name columns of the rows. The Reads of the op must then include
	// them.
	Columns bool
	// Argument says that a Template is an argument of a command of Redis: see ParseArgument.
	Argument bool
	// EndpointKind is the kind of an Endpoint; "" stands for registry.Redis.
	EndpointKind registry.EndpointKind
	// Added marks a parameter that a non-strict op got later. It does not make the op strict.
	Added bool

	// Fills names the Key parameter whose column an ExprID computes: the expression has the type of that key. Empty:
	// the expression computes numbers.
	Fills string

	// Doc says what the parameter means, with its unit, in Markdown. The reference adds type, range and default.
	Doc string

	// Source narrows what the source of a plan may say. Load checks it for strict ops. Other tasks
	// check their parameters when they run.
	Source SourceRule
}

// SourceRule says how the source of a plan writes a parameter. The zero value means an option that is named after the
// parameter and takes any value of its type. Immutable once built; any goroutine.
type SourceRule struct {
	Alias    string   // a second name of the option: "key" for "by"
	Default  *int64   // the value that the compiler writes if a source leaves out a required Int
	Min, Max *int64   // bounds of an Int, both inclusive; nil means none
	OneOf    []string // the values of a String or an Enum; nil means any

	FloatMin, FloatMax *float64 // bounds of a Float, both inclusive; nil means none

	KeyTypes []registry.Type // the types of a Key or IsKey parameter; nil means any
	// ParamTypes are the types of the parameter that an IsParam names.
	ParamTypes []registry.Type
	Writes     bool // the task writes the column of this Key or IsKey parameter, so the key must be writable
}

// Param says what a parameter of an IsParam is: "a parameter of type int".
func (r *SourceRule) Param() string {
	names := make([]string, len(r.ParamTypes))
	for i, t := range r.ParamTypes {
		names[i] = t.String()
	}
	return "a parameter of type " + strings.Join(names, " or ")
}

// OpSchema describes an op for the validation of plans. Immutable once built; any
// goroutine.
type OpSchema struct {
	Op     string        // with namespace: "core::vm"
	Params []ParamSchema // besides the common optional "trace"
	Impl   any           // the owner's description of the op; package plan ignores it

	// Partial says that the task can leave out rows whose keys failed: a node may say "on_error": "partial".
	Partial bool
	// Strict makes Load check ranges, key types, texts and the number of inputs, and makes plans with the
	// op subject to CheckColumns.
	Strict bool
	// InputsMin and InputsMax bound the inputs of a node of a strict op.
	InputsMin, InputsMax int
	// Prepare makes what the task needs at every run of a node, once, after its parameters are checked.
	// Its error refuses the plan; see ParamErrorf. Nil prepares nothing.
	Prepare func(n *Node, reg *registry.Registry) (any, error)

	// OfRequest says that the rows of a node depend not only on its parameters but also on the request's user or
	// context.
	OfRequest bool
	// Entity names the entity of the rows that a node makes, if the registry declares one of that name and no parameter with IsEntity
	// names another. Zero: none.
	Entity string
	// IDs says how a node treats rows whose ids are texts.
	IDs TextIDs

	// Reads returns the columns that a node reads from its inputs, RefReads those from its node
	// references, and Writes those that it adds or replaces. Nil means none.
	Reads, RefReads, Writes ColumnsOf
	// Outside says that a node waits for what is outside of the engine: Redis, a service.
	Outside bool
	// Pages says that a node gives out a page of its input: count rows behind the first offset.
	Pages bool
	// Scores says that a node scores rows by what it reads of them, as a model does; and Cuts that it leaves out all but
	// some number of rows. See Log.At.
	Scores, Cuts bool
	// ChoosesBy returns the columns by which a node drops rows, or leaves out all but one of a value; nil: none.
	ChoosesBy ColumnsOf
	// Across says that what a node writes of a row depends on the other rows, as a count does.
	Across bool
	// AddsColumns says that the rows of the result are rows of the first input, with the columns of Writes.
	AddsColumns bool
	// Inherits says which other columns the rows of a node have.
	Inherits Inheritance
	// KeepsRows reports whether the rows of a node are those of its only input, in their order, unless it fails. Nil: never.
	KeepsRows func(n *Node) bool
	// RowsMax returns the most rows that a node makes from so many rows of its inputs, and of its node references if
	// it inherits their columns; Unbounded stands for any number. Nil: no more than it gets.
	RowsMax func(n *Node, in int64) int64
	// TakesMost returns the most rows that a node takes of its inputs, and why. Load refuses a plan of which more may come, or
	// any number. 0, or nil: it takes any number.
	TakesMost func(n *Node) (rows int64, why string)
	// AsksOf says what a node asks of each row of its only input. A node may then read for later ones that get all rows of its
	// input: it has Ahead set. Nil: nodes of the op read for themselves.
	AsksOf func(n *Node) Asking
}

// An Asking says what a node asks of each row. Immutable; any goroutine.
type Asking struct {
	// Command stands for the command and its key. Nodes of one endpoint with equal ones share a command for each row. With
	// "" a node reads for itself.
	Command string
	// MayRefuse says that a value, or none, may fail the node. If the plan goes on without it, it would have read for others
	// in vain.
	MayRefuse bool
}

// TextIDs says how an op treats rows whose ids are texts (registry.Entity). Such rows have numbers in place of their
// ids. The numbers mean nothing except that equal ids have equal numbers.
type TextIDs uint8

// The ways to treat rows whose ids are texts.
const (
	RefusesTextIDs TextIDs = iota // Load refuses a node that takes or makes them
	MovesTextIDs                  // it takes them unless it reads the id as a value
	ReadsTextIDs                  // it takes them: it compares ids, or asks for their texts
)

// ColumnsOf returns keys of columns for a node. Immutable; any goroutine.
type ColumnsOf func(n *Node, reg *registry.Registry) []registry.KeyID

// Inheritance says whose columns the rows of a node have besides those that it writes.
type Inheritance uint8

// The inheritances.
const (
	InheritsNothing Inheritance = iota
	InheritsInputs              // the columns of all inputs
	InheritsAll                 // the columns of all inputs and node references
)

// Ops finds the schema of an op, by its full name or its bare alias. Package
// task provides it. Any goroutine.
type Ops interface {
	OpSchema(op string) (*OpSchema, bool)
}

// New reports whether the type of p came with strictness, so that an op with such a parameter is strict, unless p was
// added later.
func (p *ParamSchema) New() bool { return (p.Type >= Float || p.List) && !p.Added }

// TakesKey reports whether the value of p stands for a key of the registry.
func (p *ParamSchema) TakesKey() bool { return p.IsKey || p.Type == Key }

// IsStrict reports whether the schema or one of its parameters asks for strictness.
func IsStrict(strict bool, params []ParamSchema) bool {
	for i := range params {
		strict = strict || params[i].New()
	}
	return strict
}

// KindOfEndpoint returns the kind of an Endpoint.
func (p *ParamSchema) KindOfEndpoint() registry.EndpointKind {
	if p.EndpointKind == "" {
		return registry.Redis
	}
	return p.EndpointKind
}

// ItemsMax returns the most items of a List.
func (p *ParamSchema) ItemsMax() int {
	if p.MaxItems == 0 {
		return DefaultMaxItems
	}
	return p.MaxItems
}

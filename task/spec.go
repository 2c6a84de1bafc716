package task

import (
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/rowset"
)

// A Body is the code of a task. It reads its inputs from c, changes none of
// them, and returns a row set of the shape that its Spec promises.
// Any goroutine may run it, several at once.
type Body func(c *Ctx) (rowset.RowSet, error)

// Spec describes a task. Immutable once it is in a Catalog; any goroutine.
type Spec struct {
	// Op is the name with its namespace: "core::vm". Plans may also write the
	// part after "::" alone.
	Op string
	// Doc is one sentence for listings of tasks.
	Doc string
	// Reference documents the task for the people who write plans.
	Reference Reference
	// Params is the schema of the node's parameters; every op also takes "trace".
	Params []plan.ParamSchema
	// Inputs is the least number of inputs that a node must list. InputsMax is the most; 0 means exactly Inputs, and
	// InputsLimit is the highest value. Each run checks both. Node references count as parameters.
	Inputs, InputsMax int
	// Strict makes loading a plan check all that the schema says of a node: ranges, key types, texts and the number
	// of inputs. Loading then also checks that an earlier node writes each column that a node of the plan reads. A
	// spec with a parameter that is a List, or has a type from plan.Float on, is strict by itself, unless the
	// parameter was added later.
	Strict bool
	// Prepare runs when a plan is loaded and makes what all runs of a node share. Its result becomes n.Prepared,
	// which runs only read. It may refuse the node: see plan.ParamErrorf. Nil prepares nothing.
	Prepare func(n *plan.Node, reg *registry.Registry) (any, error)
	// Output is the shape of the result. It is checked after every run, except for the built-in tasks; a violation fails the node with ErrContract.
	Output Output
	// Writes returns the columns that a node may add to its inputs' columns or replace (for Source and Expand: the
	// columns of its result). A column of the result that is neither listed nor inherited fails the check. Reads
	// returns the columns that a node reads from its inputs, and RefReads those from its node references. If the plan
	// has a strict op, loading checks that some node writes each. The body itself is not restricted. Nil means none.
	// See Columns, ColumnParam, KeyParams and ExprKeys.
	Reads, RefReads, Writes plan.ColumnsOf
	// Entity names the entity of the rows of a Source or an Expand, if the registry declares one of that name. A
	// parameter with IsEntity takes precedence. Zero: their ids are integers without an entity.
	Entity string
	// OfRequest says that the body reads Ctx.UserID, Ctx.UserIDText, or fields of the request's context that no
	// parameter names. The task resident refuses plans with such a task, since their rows differ by request.
	OfRequest bool
	// IDs says how the task treats rows whose ids are texts: see Ctx.IDTexts. Such rows come only if the registry
	// declares an entity with text ids. Zero refuses them.
	IDs plan.TextIDs
	// Run is the body. A task of Place Waits that only reads may have Ask and Make in its place.
	Run Body
	// Ask says what the body reads, and Make makes its result of what was read. The engine reads in between: from its
	// memory, or else from Redis. Ask adds reads to r. It is called for wave 0, and again for the waves up to Waves, 4 at
	// most, when the reads of the wave before are there; a wave without reads is the last. Neither changes
	// anything but the reads, and neither may wait. On many rows they run on the CPU pool.
	Ask   func(c *Ctx, r *Reads, wave int) error
	Waves int // zero: one
	Make  func(c *Ctx, r *Reads) (rowset.RowSet, error)
	// AsksOf says what a node asks of each row of its only input. An earlier node of the same rows may then read for it: Ask
	// is called with the rows of that one, and adds one read. Of its rows Ask uses the columns of Reads only, and their ids. Nil:
	// each node reads for itself.
	AsksOf func(n *plan.Node) plan.Asking
	// Place says where Run runs.
	Place Place
	// Cost returns how many rows a node of Place OnLoop makes in one go. A node that makes many rows runs on the CPU
	// pool instead. Nil means next to none; other places have no Cost.
	Cost func(n *plan.Node) int64
	// First returns n if the node's result depends only on the first n rows of its input. False means that it depends
	// on all rows. Nil means that every node does. See Limited.
	First func(n *plan.Node) (rows int64, ok bool)
	// Limited says that the body honors Ctx.Limit. It is for tasks whose Output is Permutation or Pick.
	Limited bool
	// Inline permits the asynchronous engine to run the body on the loop, without a coroutine, when it predicts a
	// short time. The body must not wait or block.
	Inline bool
	// Cheap says, besides Inline, that the body takes a few microseconds at most for some
	// hundred rows: it may run on the loop before it has been measured.
	Cheap bool
	// Expensive says that the body never runs on the loop. It is for tasks of Place Computes.
	Expensive bool
	// ExpensiveNode reports that this holds for a node, of a task that is not Expensive as a whole. Nil: for none.
	ExpensiveNode func(n *plan.Node) bool
	// Forgets says that no reference to the inputs, or to the result, outlives the run: the body keeps none and
	// leaves none to other goroutines. The result may share memory with the inputs, as always. If all tasks of a plan
	// do so, the engine reuses big slices once the request is answered.
	Forgets bool
	// Partial says that the body honors Ctx.Partial: it can leave out the rows whose keys failed. The Output must be
	// a shape that may have fewer rows.
	Partial bool

	// KeepsRows reports whether a node of Output Pick keeps all rows in their order, unless it fails. Nil means that
	// it may not keep them. SameRows and PassThrough always do.
	KeepsRows func(n *plan.Node) bool

	// ChoosesBy returns the columns by which a node of Output Pick drops rows: no value in place of one might let a row
	// through. Nil means all that it reads, unless it keeps all rows, or a count of the best ones. A policy of a plan asks
	// for it.
	ChoosesBy plan.ColumnsOf
	// Across says that what a node writes of a row depends on other rows.
	Across bool

	// Scores says that the task scores its input's rows by their columns, as a model does: the log of served rows then has
	// what it got.
	Scores bool

	// RowsMax returns the most rows that a node makes from so many rows of its inputs, and of its node references if
	// its Output is Append or Merge. plan.Unbounded stands for any number. Nil: no more than it gets, but any number
	// for a Source or Expand. rankd check --advise uses it.
	RowsMax func(n *plan.Node, in int64) int64
	// TakesMost returns the most rows that a node takes of its inputs, and why. Loading refuses a plan of which more may come,
	// by the RowsMax of the nodes before, or any number. 0, or nil: it takes any number.
	TakesMost func(n *plan.Node) (rows int64, why string)

	// Explain runs an ended node a second time, without changing its inputs, and returns what this run reports about
	// the rows. It shares the code of Run, so that both agree. c has the arguments of the first run, and out is its
	// result. Explain and the functions of the Account must not wait. Any goroutine except the loop calls them. Nil
	// means that the shape explains everything.
	Explain func(c *Ctx, out rowset.RowSet) Account

	unchecked    bool // nobody checks the result: see engine.NewTrustingCatalog
	guardsInputs bool // a run checks that the inputs stay as they are: see NewCatalog
}

// Place says where a body runs. The task's author chooses it.
type Place uint8

// The places. "The loop" is the asynchronous engine's; "workers" are the two-pool engine's.
const (
	// Computes: on the CPU pool or a CPU worker. The body has no Redis and no services. Ctx.Sleep and Ctx.Await block its
	// worker.
	Computes Place = iota
	// Waits: on the loop, as a coroutine, or on an I/O worker. The body waits for Redis
	// and must not compute for long.
	Waits
	// OnLoop: on the loop, as a coroutine, or on a CPU worker. The body waits for a timer,
	// or computes next to nothing.
	OnLoop
)

var placeNames = [...]string{"computes", "waits", "on_loop"}

// String returns the name of the place.
func (p Place) String() string { return placeNames[p] }

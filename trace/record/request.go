// The types of this file are plain data: their owner may change them until somebody else reads them. Times are
// nanoseconds, digests are xxHash64 with seed 0. A field that is added is the last one of its struct.

package record

import "time"

// ValuesVersion counts changes of the form in which the engine's memory has values (Memory). A build replays only
// requests whose header has its own version.
const ValuesVersion = 1

// Header says what has made records. One goroutine.
type Header struct {
	Commit  string // of rankd: a version or a revision, as `rankd --version` says; empty: unknown
	Go      string // runtime.Version
	OS      string // runtime.GOOS
	Arch    string // runtime.GOARCH
	Unicode string // unicode.Version
	Zones   string // digest of the time zones that the plans name, in hex; empty: they name none
	Values  int    // ValuesVersion
	// Sample is which share of the users the records are of, from 0 to 1, by Salt. A record outside it is Marked.
	Sample float64
	Salt   string

	Written time.Time // when the writer began
	// Expires is from when on readers refuse the records; zero: never. It keeps nobody from reading them with another program.
	Expires time.Time
	// Recipients are the public keys, such as "age1…", to which what follows the header is encrypted; none: it is not.
	Recipients []string
}

// Generation is what an engine had loaded together. A file has each once. One goroutine.
type Generation struct {
	Digest string // hex SHA-256, as rankd.Generation.Digest
	Env    string // of the tables: see rankd.Options.Env
	Tables []File // of the folder of tables; none: the built-in ones
	Plans  []File // artifacts by the plan's name
	Models []File // by the model's name
}

// File is a part of a Generation. One goroutine.
type File struct {
	Name   string
	Digest string // hex SHA-256 of Bytes
	Bytes  []byte // nil: the file has only the digest, as models with `--models=false`
}

// Resident is a version of the rows that an engine kept of a plan. A file has each once. One goroutine.
type Resident struct {
	Plan   string
	Digest string // of Rows, in hex
	Rows   Rows   // with values
}

// A Source has what requests have in common. One goroutine.
type Source interface {
	// Generation returns the generation of that digest.
	Generation(digest string) (*Generation, error)
	// Resident returns the rows of a plan of that digest.
	Resident(plan, digest string) (*Resident, error)
}

// A Sink takes records. One goroutine.
type Sink interface {
	// Add takes a request, and asks from for what it has not had yet.
	Add(r *Request, from Source) error
	// Flush has what was added written.
	Flush() error
}

// Request is a recorded request. One goroutine.
type Request struct {
	ID         [16]byte // engine_request_id, the key of the record
	RequestID  string   // as the client sent it; it need not be unique
	UserID     int64
	UserIDText string // in place of UserID, if users have texts as ids
	Arrived    time.Time
	Now        float64 // what now() was: seconds since 1970
	Traffic    string  // test, bot or internal; empty: a user's
	Plan       string  // that was asked for, or that the alias chose
	Alias      string  // empty: the request named the plan
	Side       string  // of Alias
	Params     []byte  // a JSON object: the values of all parameters by name, defaults included
	Require    []string
	Generation string // Generation.Digest
	Model      string // reactor, pool or sequential
	Scheduling string // the mode
	// AllRows: each node made all its rows, as for a request with explain. Otherwise one that a cut follows made the first ones.
	AllRows bool
	// Marked: the user is not of the sample. The request failed, was late or degraded, and has neither values nor params.
	Marked bool

	Runs     []Run // of the plan, and then of the plan that answered in its place
	Answer   *Answer
	Failure  *Failure // in place of Answer
	Elapsed  time.Duration
	Waited   time.Duration // of Elapsed, for admission
	Trace    []byte        // as JSON; only if Marked
	Degraded bool

	MaxRows int // how many rows its nodes might make together; 0: the record does not say
}

// Answer is what a request returned. One goroutine.
type Answer struct {
	Plan    string // whose rows these are
	Outputs []Rows // of the plan, in order, with values
}

// Run is a run of one plan. One goroutine.
type Run struct {
	Plan      string
	Digest    string            // of its artifact
	Residents map[string]string // the Resident.Digest by plan
	Nodes     []Node            // by plan.Node.Index
	Failure   *Failure          // nil: the run succeeded
}

// Node is what one node got from outside, and what became of it. One goroutine.
type Node struct {
	ID      string
	Op      string
	End     End
	Failure *Failure // nil if End is NotRun or Ended
	Values  []Value  // in the order in which its body took them
	// Asked is the digest of the commands to Redis whose replies it took, and of the keys that it took from memory, in that order; or of the
	// documents that it sent to services. Zero: none.
	Asked uint64
	// Outside: the body has waited for functions of its own (task.Ctx.Await). The record lacks what they returned, so the node cannot run again.
	Outside bool
	Cached  int           // values from memory
	Age     time.Duration // of the oldest of these, since its read was sent
	Rows    Rows          // the result; if it failed and something stands in for it, that
}

// End says how a node ended.
type End uint8

// The ends.
const (
	NotRun  End = iota
	Ended       // its body returned rows
	Failed      // its body returned an error
	Stopped     // the engine ended it: its deadline passed, its client left, or the engine had no room
)

// Value is one thing that a body got from outside. One goroutine.
type Value struct {
	Kind    Kind
	Bytes   []byte
	Failure *Failure // of kind Broken; of a Reply that the client of a cluster made because no server answered. Otherwise nil
}

// Kind says where a Value is from, and what its Bytes are.
type Kind uint8

// The kinds.
const (
	Call   Kind = iota + 1 // without bytes: a read of many keys, a batch of commands, or an exchange with a service begins
	Reply                  // of Redis, in RESP2; an absent value is a null, an error reply begins with a minus
	Memory                 // from the engine's memory, in its own form: see ValuesVersion
	Body                   // of a service's answer
	Broken                 // the call has failed: Failure says why
)

// Failure is an error. One goroutine.
type Failure struct {
	Class string // the names of the errors that it matches, such as "redis,resp.timeout"; empty: none of those that records know
	Text  string
	Node  string // the node that failed, of a whole request
}

// Rows are rows in their order. One goroutine.
type Rows struct {
	N       int
	IDs     Column   // its name is "id"
	Columns []Column // ascending by name
}

// Column is a column of Rows. Its text form begins with the type's number (registry.Type); then follow for each row a 0 for a null, or a 1
// and the value: a float or an int as 8 bytes, a bool as one, a string behind its length, a set as the number of its
// strings and these, ascending, a vector as 4 bytes for each element; their number follows the type of the column. Numbers are little-endian,
// lengths are varints (encoding/binary). One goroutine.
type Column struct {
	Name   string
	Digest uint64 // of the text form
	Values []byte // the text form; nil: unknown
}

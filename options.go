package rankd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/rankd/rankd/internal/bounds"
	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/generation"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/task"
	"github.com/rankd/rankd/trace"
	"github.com/rankd/rankd/trace/record"
)

// Model is a threading model: how an engine runs the nodes of a plan.
type Model string

// The models. All give the same answers.
const (
	// Reactor runs all requests on one loop, with non-blocking Redis connections and a
	// CPU pool beside it.
	Reactor Model = "reactor"
	// Pool runs nodes on two pools of blocking workers, one for CPU work and one for I/O.
	Pool Model = "pool"
	// Sequential runs one node at a time on a goroutine per request.
	Sequential Model = "sequential"
)

// Scheduling says where computing nodes run.
type Scheduling = scheduler.Placement

// SchedulingMode says which computing nodes a Reactor engine runs on the loop, and which on the
// CPU pool.
type SchedulingMode = plan.Mode

// The scheduling modes.
const (
	Adaptive   = plan.Adaptive   // on the loop if the predicted time is short
	OffloadAll = plan.OffloadAll // on the pool, one by one
	InlineAll  = plan.InlineAll  // on the loop whatever it costs, for experiments
)

// DefaultBusyPoll is the default of Options.BusyPoll.
const DefaultBusyPoll = scheduler.DefaultBusyPoll

// Options configure an engine. The zero value serves the example plans from a Redis at 127.0.0.1:6379. Numbers have
// the same ranges as the flags of the same names, see docs/operating.md; zero is always allowed. Open reads Options
// once; later changes have no effect. One goroutine at a time.
type Options struct {
	// Redis names the server behind every Redis endpoint: "host:port", "redis://user:password@host:port/db",
	// "redis+cluster://host:port,host:port", "redis+sentinel://host:port,host:port/master" or
	// "unix:///path/to/redis.sock", as registry.ParseServer reads it. Without a user and password, or a database,
	// those of the registry stay. A password that the registry sends through TLS does not: Open refuses an address without
	// TLS that has no password of its own. Empty keeps the servers of the registry.
	Redis string
	// NoSecrets leaves the passwords of the endpoints unread, so that an engine opens without their files and
	// environment variables: to check plans, or to print the registry. Such an engine connects without a password.
	NoSecrets bool
	// RedisAgrees names what Redis was read from if that is not meant for Env alone: "rankd.toml". Open and Reload then
	// refuse an endpoint whose table names another server or database. Empty: Redis counts, whatever the tables say.
	RedisAgrees string
	// EmbeddedRedis starts a server inside the process and returns its address, as in Redis. Open calls
	// it if Redis is empty and the registry marks an endpoint as embedded; Close calls stop.
	// Nil means that such endpoints keep their addresses.
	EmbeddedRedis func() (addr string, stop func(), err error)
	// Env chooses the endpoints: "dev", "test" or "prod". Empty means "dev".
	Env string
	// Registry is a folder with the TOML tables of keys, params and endpoints. Nil means the
	// built-in tables.
	Registry fs.FS
	// RegistryName says in errors where Registry is. Empty means "the registry folder".
	RegistryName string

	// Models is a folder with the models of the task model, one file each: <name>.json of XGBoost, or
	// <name>.lightgbm in LightGBM's text format. Open reads them all. Nil means none.
	Models fs.FS
	// ModelsName says in errors where Models is. Empty means "the model folder".
	ModelsName string

	// Plans is a folder with plans, one file each: the artifact <name>.plan.json or, with a
	// Compiler, the source <name>.plan.ts. Nil means the examples.
	Plans fs.FS
	// PlansName says in errors where Plans is. Empty means "the built-in examples" without Plans,
	// and "the plan folder" otherwise.
	PlansName string
	// PlansDir is the path of Plans in the file system, if it has one. A Compiler names sources by it.
	PlansDir string
	// Plan names the plan for requests that name none. Open loads it. Empty means none.
	Plan string
	// PlanFile is the path of a file with the plan for requests that name none, whatever the
	// plan calls itself. A request may also name it. A file <name>.plan.ts is a source, which needs
	// a Compiler. Excludes Plan.
	PlanFile string
	// PlanText is the text of such a plan, for a program that has it in memory. PlanFile then
	// only says in errors where the plan comes from. Nil means that Open reads PlanFile.
	// Excludes Plan.
	PlanText []byte
	// Synthetic applies to requests without a plan, if Plan, PlanFile and PlanText are empty: the answer has five
	// candidates without fields. Otherwise such a request fails.
	Synthetic bool
	// Tasks are tasks in addition to the built-in ones.
	Tasks []task.Spec
	// Compiler compiles plans that are sources. Package compiler makes one. Nil means that the
	// engine takes artifacts only.
	Compiler Compiler

	// Model is the threading model. Empty means Reactor.
	Model Model
	// CPUThreads is the number of CPU workers. Zero means DefaultCPUThreads.
	CPUThreads int
	// IOThreads is the number of workers that block on Redis, with Pool. Zero means 4.
	IOThreads int
	// RedisConnections is the number of connections to each Redis endpoint. Zero means the
	// number in the registry.
	RedisConnections int
	// Credentials has functions that return user and password for each new connection to a Redis endpoint, by the
	// endpoint's id. They replace the registry's, for tokens that change. They are called on goroutines of their own,
	// and may wait as long as the endpoint's connect_timeout_ms. Its error fails the attempt to connect.
	Credentials map[string]func() (username, password string, err error)
	// Cache is the cache of every Redis endpoint, with the defaults of its mode. Empty means what the registry says.
	// Only a Reactor has one. It is for experiments: a table of the registry has more settings.
	Cache registry.CacheMode
	// ClientName is the name that Redis shows in CLIENT LIST. Empty means "rankd".
	ClientName string

	// Timeout bounds each request, from its arrival. Zero means no bound. Request.Timeout and
	// the context of Rank can only shorten it.
	Timeout time.Duration
	// NodeTimeout bounds each node, from its start. Zero means no bound.
	NodeTimeout time.Duration

	// MaxInflight bounds the requests that run at the same time, so that running requests are answered soon. Zero
	// means no bound.
	MaxInflight int
	// MaxQueue bounds the requests that wait for a place among those that run. They take turns by Request.Flow. When
	// the queue is full, a further request fails at once with ErrOverloaded, or it takes the place of the newest
	// request of the caller with the most waiting requests, which then fails with ErrOverloaded. A request whose
	// deadline passes while it waits fails then, and never runs. Zero means that none waits. It needs MaxInflight.
	MaxQueue int

	// MaxRows bounds the rows that the nodes of one request may make together. Zero means
	// task.DefaultMaxRows, ten million; task.MaxRowsLimit is the most.
	MaxRows int

	// MaxReplyBytes bounds the replies to one call of a node to Redis: to all commands that it sends at once. A call
	// whose replies grow beyond it fails, without harm to other requests. Zero means 64 MiB; the most is 2 GiB - 1.
	MaxReplyBytes int
	// NoCoalesceReads sends every read to Redis. Otherwise a Reactor sends equal reads of the same iteration of the
	// loop only once. The flag --coalesce_reads is the opposite.
	NoCoalesceReads bool

	// BusyPoll is how long a Reactor's loop looks for Redis's answers before it sleeps. That saves the time of waking
	// up, but costs processor time while few requests are in flight. Zero means DefaultBusyPoll; with a negative
	// value the loop sleeps at once.
	BusyPoll time.Duration

	// Scheduling says where computing nodes run. The zero value lets the engine decide.
	Scheduling Scheduling
	// AllowRequestScheduling permits Request.Scheduling. It is for experiments: InlineAll from a
	// stranger stalls the loop.
	AllowRequestScheduling bool

	// AllowRequestTrace permits Request.Trace. A traced answer is many times as long, and reveals how the plan and
	// the machine work.
	AllowRequestTrace bool
	// TraceSample records one request in so many for TraceSink, beginning with the first. Zero means none. It counts
	// only requests that a trace.Chooser wants.
	TraceSample int
	// TraceSink takes the recordings. TraceSample needs it, and it needs TraceSample.
	TraceSink trace.Sink
	// TraceDetail says how much of a recorded request is recorded. Zero (trace.Off) means trace.Full.
	TraceDetail trace.Detail

	// Record takes a record of each request of some users, with which it can be run again: see docs/record.md. A goroutine beside the requests
	// calls its methods. Nil: no request is recorded.
	Record record.Sink
	// RecordUsers is for how many users in a hundred requests are recorded: above 0. The same users are chosen each time, and others than
	// those of ServedUsers.
	RecordUsers float64
	// RecordNoModels leaves the models' bytes out of records: only who has the models can run such a request again.
	RecordNoModels bool
	// Served takes the log of what was served: see docs/served-log.md. Each call of Write has whole lines, and comes on one
	// goroutine. It may wait: answers do not, and lines that come too fast are dropped and counted (Engine.ServedLines). Nil means no log.
	Served io.Writer
	// ServedUsers is how many users in a hundred have lines. Zero means 100.
	ServedUsers float64
	// ServedUserKeys is a file of keys by which lines have users as keyed hashes: a line "NAME SECRET" each, the newest
	// first. Empty: lines have the ids of users.
	ServedUserKeys string
	// AllowRequestTraffic permits Request.Traffic. A stranger could otherwise hide among tests.
	AllowRequestTraffic bool

	// AllowRequestExplain permits Request.Explain. An explained answer is many times as long, takes more memory, and
	// reveals how the plan works.
	AllowRequestExplain bool

	// AllowRequestNow permits Request.Now. It is for tests and experiments: the caller then controls what plans
	// filter by age.
	AllowRequestNow bool

	// Now is the calendar: it sets now() in a plan when a request arrives, and the date of its trace. Tests fix it.
	// Timers and deadlines have a clock of their own. Any goroutine calls it, including the loop. Nil means time.Now.
	Now func() time.Time

	// Logger receives events that no answer reports, such as a panic in a callback. Nil means
	// slog.Default().
	Logger *slog.Logger
}

// A Compiler turns the source of a plan into its artifact. Any goroutine.
type Compiler interface {
	// Compile returns the artifact of the plan whose source is a file of folder. The source may
	// import other files of folder. dir is the path of folder in the file system, "" if it has none.
	// The language has the tasks as methods, and the keys, params and endpoints of reg. The error
	// is one line and names the file.
	Compile(folder fs.FS, dir, file string, tasks *task.Catalog, reg *registry.Registry) ([]byte, error)
}

// source returns what generations are loaded from.
func (o *Options) source() generation.Source {
	s := generation.Source{
		Redis: o.Redis, RedisAgrees: o.RedisAgrees, NoSecrets: o.NoSecrets, EmbeddedRedis: o.EmbeddedRedis, Env: o.Env, Registry: o.Registry, RegistryName: o.RegistryName, Cache: o.Cache,
		Models: o.Models, ModelsName: o.ModelsName, Plans: o.Plans, PlansName: o.PlansName, PlansDir: o.PlansDir, Plan: o.Plan, PlanFile: o.PlanFile,
		PlanText: o.PlanText, Synthetic: o.Synthetic, Tasks: o.Tasks,
	}
	if o.Compiler != nil {
		s.Compile = o.Compiler.Compile
	}
	return s
}

// maxRows returns how many rows the nodes of one request may make together.
func (o *Options) maxRows() int { return cmp.Or(o.MaxRows, task.DefaultMaxRows) }

// withDefaults fills in defaults and reports all that is wrong with o at once.
func (o Options) withDefaults() (Options, error) {
	if o.Env == "" {
		o.Env = "dev"
	}
	if o.Model == "" {
		o.Model = Reactor
	}
	if o.PlansName == "" {
		o.PlansName = "the plan folder"
		if o.Plans == nil {
			o.PlansName = "the built-in examples"
		}
	}
	if o.RegistryName == "" {
		o.RegistryName = "the registry folder"
	}
	if o.ModelsName == "" {
		o.ModelsName = "the model folder"
	}
	if o.Scheduling.Mode == "" {
		o.Scheduling.Mode = Adaptive
	}
	if o.PlanText != nil && o.PlanFile == "" {
		o.PlanFile = "the plan"
	}
	if o.TraceDetail == trace.Off {
		o.TraceDetail = trace.Full
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch o.Model {
	case Reactor, Pool, Sequential:
	default:
		problem("Model must be reactor, pool or sequential, not %s", errtext.Quote(string(o.Model)))
	}
	if err := o.Scheduling.Mode.Check(); err != nil {
		problem("Scheduling.Mode %w", err)
	}
	if o.Plan != "" && o.PlanFile != "" {
		problem("Plan excludes PlanFile and PlanText")
	}
	eachNumber(reflect.ValueOf(o), "", func(name string, value int64) {
		r, _ := bounds.Option(name)
		switch {
		case value < 0 && name != "BusyPoll":
			problem("%s must not be negative", name)
		case value > r.Max():
			problem("%s must be at most %s, not %s", name, r.Show(r.Max()), r.Show(value))
		}
	})
	if o.MaxQueue > 0 && o.MaxInflight == 0 {
		problem("MaxQueue needs MaxInflight")
	}
	if o.Cache != registry.CacheOff && o.Cache != registry.CacheTTL && !o.Cache.Tracked() {
		problem("Cache must be ttl, broadcast or track")
	}
	if (o.TraceSample > 0) != (o.TraceSink != nil) {
		problem("TraceSample and TraceSink need each other")
	}
	if o.Record != nil && !(o.RecordUsers > 0 && o.RecordUsers <= 100) {
		problem("RecordUsers must be above 0 and at most 100, not %v", o.RecordUsers)
	}
	if o.Record == nil && (o.RecordUsers != 0 || o.RecordNoModels) {
		problem("RecordUsers and RecordNoModels need Record")
	}
	if !(o.ServedUsers >= 0 && o.ServedUsers <= 100) {
		problem("ServedUsers must be 0 to 100, not %v", o.ServedUsers)
	}
	if o.Served == nil && (o.ServedUsers != 0 || o.ServedUserKeys != "") {
		problem("ServedUsers and ServedUserKeys need Served")
	}
	if o.TraceDetail > trace.Full {
		problem("TraceDetail must be a level of detail, not %d", o.TraceDetail)
	}
	if o.Redis != "" {
		if _, err := RedisAddr(o.Redis); err != nil {
			problem("Redis must be host:port or a URL: %w", err)
		}
	}
	return o, errors.Join(problems...)
}

// eachNumber calls check with the name and the value of each number and each duration of a struct, and of the structs
// in it.
func eachNumber(of reflect.Value, prefix string, check func(name string, value int64)) {
	for field, value := range of.Fields() {
		switch {
		case value.Kind() == reflect.Struct:
			eachNumber(value, prefix+field.Name+".", check)
		case value.CanInt():
			check(prefix+field.Name, value.Int())
		}
	}
}

// RedisAddr returns the address in Options.Redis as errors show it: "host:port" or "unix:/path", without user and
// password. The error says why Open would refuse it, but does not quote it, since it may hold a password. Any
// goroutine.
func RedisAddr(redis string) (string, error) {
	server, err := registry.ParseServer(redis)
	if err != nil {
		return "", err
	}
	return server.Addr(), nil
}

// gcPercent trades memory for fewer collections. A request leaves about 2 KB of short-lived garbage, and almost
// nothing lives on. At Go's default a process of a few MB collects every 4 MB, some 20 times a second under load,
// which takes a noticeable share of the CPU time. At 800 it collects every 32 MB. The price is at most some 30 MB
// more of memory while the live heap is small.
const gcPercent = 800

// gcMemoryLimit, in bytes, bounds the price of gcPercent when the live heap is not small: beyond
// it the collector runs as often as it must.
const gcMemoryLimit = 2 << 30

// DefaultCPUThreads returns the default of Options.CPUThreads: one fewer than the machine has cores, at least 2 and
// at most 8.
func DefaultCPUThreads() int { return scheduler.DefaultCPUThreads(runtime.NumCPU()) }

// TuneRuntime sets the process up for a Reactor engine with that many CPU workers. main calls
// it, once, before Open; no other function of this package changes settings of the process.
// Settings of the environment (GOMAXPROCS, GOGC, GOMEMLIMIT) stay as they are.
//
// GOMAXPROCS becomes cpuThreads + 2. The loop is one goroutine beside the CPU workers. With as
// many busy workers as Ps it would wait for a P each time it wakes up, as long as the scheduler's
// preemption slice of 10 ms. One more P is for the loop, and one for the runtime's timers and the
// goroutines that read and write the request stream.
func TuneRuntime(cpuThreads int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cpuThreads + 2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(gcMemoryLimit)
	}
}

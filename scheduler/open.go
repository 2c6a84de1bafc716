package scheduler

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/rankd/rankd/cpupool"
	"github.com/rankd/rankd/internal/inference"
	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/version"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/rowset"
)

// Config sets an engine up. Registry is required, and has the endpoints of all plans that the engine will run. Immutable once given to an engine.
type Config struct {
	Registry *registry.Registry
	// CPUThreads is the number of CPU workers. Zero means DefaultCPUThreads of this machine.
	CPUThreads int
	// IOThreads is the number of I/O workers of the two-pool engine. Zero means 4.
	IOThreads int
	// RedisConnections overrides the connections of every Redis endpoint's policy.
	// Zero leaves the policy's.
	RedisConnections int
	// ClientName is shown by Redis's CLIENT LIST. Empty means "rankd".
	ClientName string
	// NodeTimeout bounds each node from its start. Zero means no bound.
	NodeTimeout time.Duration
	// MaxRows bounds the rows that the nodes of one request make together, so that no plan
	// asks for more memory than there is; a node that would exceed it fails with a
	// *task.RowsError. Zero means task.DefaultMaxRows, and task.MaxRowsLimit is the most.
	MaxRows int
	// MaxInflight bounds the requests that run at the same time. Zero means no bound.
	MaxInflight int
	// MaxQueue bounds the requests that wait for a place among those that run, in turns by Execution.Flow. When one more comes, the
	// newest of the caller with the most is refused with ErrOverloaded. Zero means that none waits.
	MaxQueue int
	// MaxReplyBytes bounds the replies to one call to Redis. A call whose replies grow beyond it fails
	// with resp.ErrTooLarge. Zero means resp.DefaultMaxReplyBytes.
	MaxReplyBytes int
	// NoCoalesceReads sends every read that is asked for. Otherwise equal reads that an Async asks
	// for in one iteration are one command.
	NoCoalesceReads bool
	// BusyPoll is how long the loop of an Async polls before it sleeps: see reactor.Config.
	BusyPoll time.Duration
	// Placement says where computing nodes run. Blocking engines only take from it whether a sort before a take
	// selects the first rows: not in the mode OffloadAll.
	Placement Placement
	// Memory keeps big slices from one request to the next. Nil means a pool of the engine's own.
	// Blocking engines keep none.
	Memory *rowset.Pool
	// Credentials gives the user and the password of a Redis endpoint for each new connection, in place of those of its policy: see
	// resp.Options.Login. Nil, or a nil result: those of the policy.
	Credentials func(ep *registry.Endpoint) (login func() (username, password string, err error))
	// Clock tells the time to everything below the engine. Nil means a real clock.
	Clock clock.Clock
	// OnPanic receives a panic in a callback on the loop, or in a blocking engine, which contain it. Nil logs it.
	OnPanic func(recovered any, stack []byte)
	// OnStuck is called when one callback holds up the loop, and when that has ended, on a goroutine of the engine.
	// Nil logs it with slog.Default().
	OnStuck func(Stuck)
	// OnUntracked is called when a Redis with registry.CacheBroadcast or CacheTrack refuses to report changes, and
	// when it no longer refuses. It is called on the loop and must not wait. Nil means a line in slog.Default.
	OnUntracked func(Untracked)
	// OnTurn is called when all masters of a Redis Cluster have changed, or a node of it answers for another cluster: see
	// resp.Options.OnTurn. It must not wait. Nil means a line in slog.Default.
	OnTurn func(Turn)
	// OnDenied is called when a Redis denies the user what an engine needs beside the commands of tasks: see
	// resp.Options.OnDenied. It must not wait. Nil means a line in slog.Default.
	OnDenied func(Denied)
}

// WithDefaults returns c with a default in each field that has one and is zero. Each engine calls
// it once, when it opens.
func (c Config) WithDefaults() Config {
	if c.CPUThreads <= 0 {
		c.CPUThreads = DefaultCPUThreads(runtime.NumCPU())
	}
	if c.IOThreads <= 0 {
		c.IOThreads = 4
	}
	if c.ClientName == "" {
		c.ClientName = "rankd"
	}
	if c.Clock == nil {
		c.Clock = clock.NewReal()
	}
	if c.OnUntracked == nil {
		c.OnUntracked = func(u Untracked) { go u.Log(slog.Default()) } // The loop does not wait for a log.
	}
	if c.OnTurn == nil {
		c.OnTurn = func(t Turn) { go t.Log(slog.Default()) } // The loop does not wait for a log.
	}
	if c.OnDenied == nil {
		c.OnDenied = func(d Denied) { go d.Log(slog.Default()) } // The loop does not wait for a log.
	}
	return c
}

// DefaultCPUThreads returns the number of CPU workers on a machine of so many cores: all but one, which the loop has
// for itself. It is at least two, since each heavy job would hold up all others behind a single worker. It is at most
// eight, the default of the original specification. docs/placement.md#how-many-cpu-workers has the figures.
func DefaultCPUThreads(cores int) int { return min(max(2, cores-1), 8) }

// DefaultBusyPoll is how long the loop polls if the Config says nothing else.
const DefaultBusyPoll = reactor.DefaultBusyPoll

// OpenAsync starts an engine with a loop of its own, hosted by gnet, a CPU pool, and a client
// per endpoint. A client connects when a request first needs it. Close ends them all.
func OpenAsync(cfg Config) (*Async, error) {
	cfg = cfg.WithDefaults()
	host := reactor.New(reactor.Config{Clock: cfg.Clock, OnPanic: cfg.OnPanic, BusyPoll: cfg.BusyPoll})
	if err := host.Start(); err != nil {
		return nil, fmt.Errorf("starting the event loop: %w", err)
	}
	l := host.Loop()
	pool := cpupool.New(l, cpupool.Config{Workers: cfg.CPUThreads, Clock: cfg.Clock})
	e := NewAsync(AsyncConfig{Config: cfg, Loop: l, CPU: pool})
	e.reactor = host
	e.watchdog = newWatchdog(l, cfg.OnStuck)
	e.watchdog.start(time.NewTicker(stuckAfter).C)
	e.connect = func(ep *registry.Endpoint) { e.open(&cfg, ep) }
	for _, ep := range cfg.Registry.Endpoints() {
		e.connect(ep)
	}
	e.release = func() {
		pool.Close()
		e.watchdog.close()
		host.Stop()
		<-l.Done()
	}
	return e, nil
}

// Reactor returns the reactor that OpenAsync started, nil on a loop of somebody else's. It ends when Close
// returns. Any goroutine.
func (e *Async) Reactor() *reactor.Reactor { return e.reactor }

// RedisOptions returns an endpoint's policy as the clients of package resp take it.
func (c *Config) RedisOptions(ep *registry.Endpoint) resp.Options {
	connections := ep.Policy.Connections
	if c.RedisConnections > 0 {
		connections = c.RedisConnections
	}
	login := ep.Policy.Login()
	if c.Credentials != nil {
		if own := c.Credentials(ep); own != nil {
			login = own
		}
	}
	return resp.Options{
		Addr:      ep.Addr(),
		Login:     login,
		Secure:    transport.TLS(ep.TLS.Config()),
		Master:    ep.Master,
		Sentinels: SentinelOptions(ep.TLS, &ep.Policy.Sentinel),
		ReadFrom:  resp.ReadFrom(ep.Policy.Replicas.ReadFrom),

		ReplicaMaxLagBytes: ep.Policy.Replicas.MaxLagBytes,

		ClientName:      c.ClientName,
		LibName:         "rankd",
		LibVersion:      version.Read().Module,
		Username:        ep.Policy.Username,
		Password:        ep.Policy.Password.Reveal(),
		Database:        ep.Policy.Database,
		MaxInflight:     ep.Policy.MaxInflight,
		Connections:     connections,
		ConnectTimeout:  ep.Policy.ConnectTimeout,
		RequestTimeout:  ep.Policy.RequestTimeout,
		MaxReplyBytes:   c.MaxReplyBytes,
		NoCoalesceReads: c.NoCoalesceReads,
		Seed:            uint64(time.Now().UnixNano()),
		OnTurn:          func(t resp.ClusterTurn) { c.OnTurn(Turn{ep, t}) },
		OnDenied:        func(addr string, err error) { c.OnDenied(Denied{ep, addr, err}) },
	}
}

// SentinelOptions returns how sentinels are reached that know a master.
func SentinelOptions(secure *registry.TLS, s *registry.Sentinel) resp.SentinelOptions {
	o := resp.SentinelOptions{Username: s.Username, Password: s.Password.Reveal(), Login: s.Login()}
	if !s.Plain {
		o.Secure = transport.TLS(secure.Config())
	}
	return o
}

// RemoteOptions returns an endpoint's policy as the clients of package remote take it.
func RemoteOptions(ep *registry.Endpoint) remote.Options {
	return remote.Options{
		URL:             ep.URL(),
		Header:          ep.Header(),
		Connections:     ep.Policy.Connections,
		MaxInflight:     ep.Policy.MaxInflight,
		ConnectTimeout:  ep.Policy.ConnectTimeout,
		RequestTimeout:  ep.Policy.RequestTimeout,
		MaxRequestBytes: ep.Service.MaxRequestBytes,
		MaxAnswerBytes:  ep.Service.MaxAnswerBytes,
		Describe:        inference.Describe(ep),
	}
}

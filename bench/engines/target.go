package engines

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/rankd/rankd/bench/load"
	"github.com/rankd/rankd/bench/worker"
	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/scheduler"
	"github.com/rankd/rankd/scheduler/blocking"
	"github.com/rankd/rankd/task/builtin"
)

// Open opens an engine. A peer is not in this process: that is an error.
func Open(s Spec, cfg scheduler.Config) (scheduler.Engine, error) {
	if s.CPUThreads > 0 {
		cfg.CPUThreads = s.CPUThreads
	}
	if s.IOThreads > 0 {
		cfg.IOThreads = s.IOThreads
	}
	if s.RedisPool > 0 {
		cfg.RedisConnections = s.RedisPool
	}
	switch s.Kind {
	case Reactor:
		return scheduler.OpenAsync(cfg)
	case Pool:
		return blocking.OpenTwoPools(cfg), nil
	case Sequential:
		return blocking.OpenSequential(cfg), nil
	default:
		return nil, fmt.Errorf("engine %s does not run in this process", s)
	}
}

// Opener returns how a worker opens the engine: cfg.Registry with all its Redis
// endpoints at the address that the setup names, and the setup's artifact.
func Opener(s Spec, cfg scheduler.Config) worker.Open {
	return func(setup worker.Setup) (load.Target, error) {
		host, portText, err := net.SplitHostPort(setup.Redis)
		if err != nil {
			return nil, fmt.Errorf("redis address: %w", err)
		}
		port, err := strconv.Atoi(portText)
		if err != nil {
			return nil, fmt.Errorf("redis address %q: %w", setup.Redis, err)
		}
		cfg := cfg
		cfg.Registry = cfg.Registry.WithRedis(host, port)
		graph, err := plan.Load(setup.Plan, []byte(setup.Artifact), builtin.Catalog(), cfg.Registry)
		if err != nil {
			return nil, err
		}
		engine, err := Open(s, cfg)
		if err != nil {
			return nil, err
		}
		return NewTarget(engine, graph), nil
	}
}

// Target is an engine that runs one plan for users. It closes the engine. Any goroutine.
type Target struct {
	engine  scheduler.Engine
	graph   *plan.Graph
	clock   clock.Clock   // the engine's; used if there is a timeout
	timeout time.Duration // of each request; zero: none
}

// NewTarget makes a target of an engine.
func NewTarget(e scheduler.Engine, g *plan.Graph) *Target { return &Target{engine: e, graph: g} }

// WithTimeout makes each request have a deadline, so long after it is sent, on the
// engine's clock. It returns t.
func (t *Target) WithTimeout(c clock.Clock, timeout time.Duration) *Target {
	t.clock, t.timeout = c, timeout
	return t
}

// NewClient implements load.Target.
func (t *Target) NewClient(answered func(err error)) load.Client {
	return &client{
		target: t, request: scheduler.Execution{Graph: t.graph},
		done: func(r *scheduler.Result) { answered(r.Err) },
	}
}

// Close implements load.Target.
func (t *Target) Close() { t.engine.Close(scheduler.Forever) }

// Traffic implements load.Counting: the sum over the endpoints.
func (t *Target) Traffic() load.Traffic {
	var sum load.Traffic
	for _, s := range t.engine.Metrics().Redis {
		sum.RoundTrips += s.RoundTrips
		sum.Commands += s.Commands
		sum.BytesSent += s.BytesSent
		sum.BytesReceived += s.BytesReceived
	}
	return sum
}

// client owns what one request at a time needs, so that sending allocates nothing.
type client struct {
	target  *Target
	request scheduler.Execution
	done    func(*scheduler.Result)
}

// Send implements load.Client.
func (c *client) Send(user int64) {
	t := c.target
	c.request.UserID = user
	if t.timeout > 0 {
		c.request.Deadline = t.clock.Now().Add(t.timeout)
	}
	t.engine.Submit(&c.request, c.done)
}

var _ load.Counting = (*Target)(nil)

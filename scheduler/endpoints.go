package scheduler

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/rankd/rankd/internal/remote"
	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/internal/sentinel"
	"github.com/rankd/rankd/plan"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/resp/clusterclient"
)

// endpoint is what an Async holds for one endpoint; the zero value means that the endpoint is gone. Loop only.
type endpoint struct {
	*registry.Endpoint
	redis     Caller           // nil: it is not a Redis
	service   Remote           // nil: it is of another kind than http
	sentinels *sentinel.Dialer // nil: it has none
	tracker   changeTracker    // of its table; nil: nobody reports changes
}

// close ends the calls under way, and closes the connections. A second call does nothing.
func (to *endpoint) close() {
	if to.redis != nil {
		to.redis.Close()
	}
	if to.service != nil {
		to.service.Close()
	}
	if to.sentinels != nil {
		to.sentinels.Close()
	}
	if to.tracker != nil {
		to.tracker.Close()
	}
}

// add makes room for an endpoint, and a table if its reads are kept.
func (e *Async) add(ep *registry.Endpoint) {
	e.endpoints = at(e.endpoints, ep.Index)
	e.endpoints[ep.Index] = endpoint{Endpoint: ep}
	if e.given.Tables != nil {
		e.given.Tables = at(e.given.Tables, ep.Index)
	}
	cache := ep.Policy.Cache
	if cache.Mode == registry.CacheOff {
		return
	}
	parts := 0
	if ep.Cluster {
		parts = cluster.Slots
	}
	e.given.Tables = at(e.given.Tables, ep.Index)
	e.given.Tables[ep.Index] = rowcache.NewDivided(cache.MaxBytes, cache.MaxAge, parts)
}

// at returns all with an element at an index. It is another slice if that is new: bodies may have the old one.
func at[T any](all []T, index int) []T {
	if index < len(all) {
		return all
	}
	return append(slices.Clip(all), make([]T, index+1-len(all))...)
}

// open makes the clients of an endpoint, for an engine that OpenAsync has opened with that config.
func (e *Async) open(cfg *Config, ep *registry.Endpoint) {
	to := &e.endpoints[ep.Index]
	switch ep.Kind {
	case registry.Redis:
		var d transport.Dialer = e.reactor
		options := cfg.RedisOptions(ep)
		if ep.Master != "" {
			to.sentinels = sentinel.NewDialer(e.loop, d, options)
			d = to.sentinels
		}
		if ep.Cluster {
			to.redis = clusterclient.New(e.loop, d, options)
		} else {
			to.redis = resp.NewClient(e.loop, d, options)
		}
		to.tracker = e.track(d, cfg, ep)
	case registry.HTTP:
		to.service = remote.NewClient(e.loop, nil, RemoteOptions(ep))
	}
}

// Denied says that a Redis denies the user what an engine needs beside the commands of tasks. No request fails for it. Immutable; any goroutine.
type Denied struct {
	Endpoint *registry.Endpoint
	Addr     string // of the server
	Err      error
}

// Log writes a line.
func (d Denied) Log(l *slog.Logger) {
	text := "a node of a Redis Cluster denies what reads from replicas need, +readonly or +info: other nodes are read in its place"
	if errors.Is(d.Err, resp.ErrUnidentified) {
		text = "a node of a Redis Cluster does not tell its id, for which +cluster|myid is needed: another server at its address is noticed by the next map only"
	}
	if d.Endpoint.Master != "" {
		text = "a sentinel denies to tell of new masters, for which SUBSCRIBE is needed: without another sentinel, the master is asked for at new connections only"
	}
	l.Warn(text, "endpoint", d.Endpoint.Name, "address", d.Addr, "error", d.Err)
}

// Turn says that the masters of a Redis Cluster are all others than before, or that a node of another cluster was not
// believed. Immutable; any goroutine.
type Turn struct {
	Endpoint *registry.Endpoint
	resp.ClusterTurn
}

// Log writes a line.
func (t Turn) Log(l *slog.Logger) {
	text := "all masters of a Redis Cluster have changed"
	if t.Refused {
		text = "a node answers for another Redis Cluster: the last masters stay, since neither a node of the endpoint's addresses nor most nodes say so"
	}
	if t.Err != nil {
		text = "another server is at the address of a node of a Redis Cluster: connections to it are refused, and the nodes are asked for the map"
		l.Warn(text, "endpoint", t.Endpoint.Name, "address", t.Asked, "error", t.Err)
		return
	}
	masters := t.Masters[:min(len(t.Masters), turnMastersShown)]
	l.Warn(text, "endpoint", t.Endpoint.Name, "asked", t.Asked, "masters", masters, "of", len(t.Masters))
}

// turnMastersShown bounds the addresses in a line.
const turnMastersShown = 8

// Connect implements Engine.
func (e *Async) Connect(endpoints []*registry.Endpoint) {
	done := make(chan struct{})
	posted := e.loop.Post(func() {
		defer close(done)
		for _, ep := range endpoints {
			e.add(ep)
			e.connect(ep)
		}
	})
	if posted {
		<-done
	}
}

// Keep implements Engine.
func (e *Async) Keep(graphs map[*plan.Graph]bool, endpoints map[*registry.Endpoint]bool) {
	e.loop.Post(func() {
		e.kept = endpoints
		for g, p := range e.profiles {
			if p.retired = !graphs[g]; p.retired && p.live == 0 {
				e.forget(p)
			}
		}
		e.disconnect()
	})
}

// disconnect closes the endpoints that are not kept and that no request may use any more.
func (e *Async) disconnect() {
	for i := range e.endpoints {
		ep := e.endpoints[i].Endpoint
		if ep == nil || e.kept[ep] || e.uses(ep) {
			continue
		}
		e.endpoints[i].close()
		e.endpoints[i] = endpoint{}
		if i < len(e.given.Tables) {
			e.given.Tables[i] = nil
		}
	}
}

// uses reports whether a running or waiting request, or an orphan, may use an endpoint.
func (e *Async) uses(ep *registry.Endpoint) bool {
	for g, p := range e.profiles {
		if p.live > 0 && g.Registry.Has(ep) {
			return true
		}
	}
	return e.admission.AnyUses(ep)
}

package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/cluster"
	"github.com/rankd/rankd/resp/clusterclient"
	"github.com/rankd/rankd/rowcache"
)

// newTables returns the tables of the endpoints whose reads are kept, by endpoint index, or nil if there are none.
func newTables(reg *registry.Registry) (tables []*rowcache.Table) {
	endpoints := reg.Endpoints()
	for _, ep := range endpoints {
		cache := ep.Policy.Cache
		if cache.Mode == registry.CacheOff {
			continue
		}
		if tables == nil {
			tables = make([]*rowcache.Table, len(endpoints))
		}
		parts := 0
		if ep.Cluster {
			parts = cluster.Slots
		}
		tables[ep.Index] = rowcache.NewDivided(cache.MaxBytes, cache.MaxAge, parts)
	}
	return tables
}

// Untracked says that a server does not tell of changes, and what becomes of its cache. Immutable; any goroutine.
type Untracked struct {
	Endpoint *registry.Endpoint
	Err      error // matches resp.ErrTrackingRefused; nil: the server refused before, and does not any more
}

// Log writes a line: an error if the endpoint requires a server that tells.
func (u Untracked) Log(l *slog.Logger) {
	level, text := slog.LevelWarn, "a Redis does not tell of changes: values are kept for cache_max_age_ms, whatever happens to their keys"
	switch {
	case u.Err == nil:
		l.Info("a Redis tells of changes now", "endpoint", u.Endpoint.Name)
		return
	case u.Endpoint.Policy.Cache.Required:
		level, text = slog.LevelError, "a Redis does not tell of changes, as cache_require demands: nothing is kept in memory, and the engine is not ready"
	}
	l.Log(context.Background(), level, text, "endpoint", u.Endpoint.Name, "error", u.Err)
}

// probePrefix begins no key. A server that is asked to tell of its changes refuses as it would refuse others.
const probePrefix = "rankd:does the server tell of changes?"

// track has the servers of endpoints whose mode is tracked tell of changes. It connects to a server when a plan first reads from
// it, or at once if the endpoint requires that it tells. A server that refuses has its values kept by their age alone, unless the endpoint requires
// more: nothing is kept then. dialers are by endpoint index.
func (e *Async) track(l *loop.Loop, dialers []transport.Dialer, cfg *Config) {
	hear := cfg.OnUntracked
	if hear == nil {
		hear = func(u Untracked) { go u.Log(slog.Default()) } // The loop does not wait for a log.
	}
	for _, ep := range e.reg.Endpoints() {
		cache := ep.Policy.Cache
		if !cache.Mode.Tracked() {
			continue
		}
		table := e.tables[ep.Index]
		var tracker changeTracker
		refused := false
		changed := func(err error) {
			if !errors.Is(err, resp.ErrTrackingRefused) {
				table.Rely(tracker)
				if err == nil && refused {
					refused = false
					hear(Untracked{ep, nil})
				}
				return
			}
			if !cache.Required {
				table.Rely(nil)
			}
			refused = true
			hear(Untracked{ep, err})
		}
		switch reads := cache.Mode == registry.CacheTrack; client := e.clients[ep.Index].(type) {
		case *clusterclient.Client:
			tracker = client.Track(cache.MaxSilence, table, reads, changed)
		case *resp.Client:
			single := resp.NewTracker(l, dialers[ep.Index], cfg.RedisOptions(ep), cache.MaxSilence, table, changed)
			if reads {
				single.TrackReads(client)
			}
			tracker = single
		}
		table.Rely(tracker)
		table.Watch(tracker)
		e.trackers = append(e.trackers, tracker)
		if cache.Required {
			_ = l.Post(func() { tracker.Track([]string{probePrefix}) }) // Only a loop that has ended refuses.
		}
	}
}

// A changeTracker has the servers of an endpoint tell what changes: a *resp.Tracker, or a *clusterclient.Tracker. Loop only.
type changeTracker interface {
	rowcache.Source
	Close()
}

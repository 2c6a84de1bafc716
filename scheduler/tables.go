package scheduler

import (
	"errors"
	"log/slog"

	"github.com/rankd/rankd/loop"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
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
		tables[ep.Index] = rowcache.NewTable(cache.MaxBytes, cache.MaxAge)
	}
	return tables
}

// Untracked says that a server does not tell of changes, and what becomes of its cache. Immutable; any goroutine.
type Untracked struct {
	Endpoint *registry.Endpoint
	Err      error // matches resp.ErrTrackingRefused
}

// Log writes a line.
func (u Untracked) Log(l *slog.Logger) {
	text := "a Redis does not tell of changes: values are kept for cache_max_age_ms, whatever happens to their keys"
	if u.Endpoint.Policy.Cache.Required {
		text = "a Redis does not tell of changes: nothing is kept in memory"
	}
	l.Warn(text, "endpoint", u.Endpoint.Name, "error", u.Err)
}

// track has the servers of endpoints whose mode is tracked tell of changes. It connects to a server when a plan first reads from
// it. A server that refuses has its values kept by their age alone, unless the endpoint requires more: nothing is kept then.
func (e *Async) track(l *loop.Loop, d transport.Dialer, cfg *Config) {
	hear := cfg.OnUntracked
	if hear == nil {
		hear = func(u Untracked) { u.Log(slog.Default()) }
	}
	for _, ep := range e.reg.Endpoints() {
		cache := ep.Policy.Cache
		if !cache.Mode.Tracked() {
			continue
		}
		table := e.tables[ep.Index]
		var tracker *resp.Tracker
		tracker = resp.NewTracker(l, d, cfg.RedisOptions(ep), cache.MaxSilence, table, func(err error) {
			if !errors.Is(err, resp.ErrTrackingRefused) {
				table.Rely(tracker)
				return
			}
			if !cache.Required {
				table.Rely(nil)
			}
			go hear(Untracked{ep, err}) // The loop does not wait for a log.
		})
		if cache.Mode == registry.CacheTrack {
			tracker.TrackReads(e.clients[ep.Index].(*resp.Client))
		}
		table.Rely(tracker)
		table.Watch(tracker)
		e.trackers = append(e.trackers, tracker)
	}
}

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

// track has the servers of endpoints with registry.CacheBroadcast tell of changes. It connects to a server when a plan first reads from
// it. A server that refuses has its values kept by their age alone, unless the endpoint requires more: nothing is kept then.
func (e *Async) track(l *loop.Loop, d transport.Dialer, options func(*registry.Endpoint) resp.Options) {
	for _, ep := range e.reg.Endpoints() {
		cache := ep.Policy.Cache
		if cache.Mode != registry.CacheBroadcast {
			continue
		}
		table := e.tables[ep.Index]
		var tracker *resp.Tracker
		tracker = resp.NewTracker(l, d, options(ep), cache.MaxSilence, table, func(err error) {
			switch {
			case !errors.Is(err, resp.ErrTrackingRefused):
				table.Rely(tracker)
				return
			case cache.Required:
				logCache(ep, err, "nothing is kept in memory")
			default:
				table.Rely(nil)
				logCache(ep, err, "values are kept for cache_max_age_ms, whatever happens to their keys")
			}
		})
		table.Rely(tracker)
		table.Watch(tracker)
		e.trackers = append(e.trackers, tracker)
	}
}

// logCache says once what becomes of the cache of a server that does not tell of changes. The loop does not wait for the log.
func logCache(ep *registry.Endpoint, err error, instead string) {
	go slog.Default().Warn("rankd: a Redis does not tell of changes: "+instead, "endpoint", ep.Name, "error", err)
}

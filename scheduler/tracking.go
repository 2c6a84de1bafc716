package scheduler

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rankd/rankd/internal/rowcache"
	"github.com/rankd/rankd/reactor/transport"
	"github.com/rankd/rankd/registry"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/clusterclient"
)

// Untracked says that a server does not report changes, and what happens to its cache. Immutable; any goroutine.
type Untracked struct {
	Endpoint *registry.Endpoint
	Err      error // matches resp.ErrTrackingRefused; nil: the server refused before, but no longer does
}

// Log writes a line: an error if the endpoint requires a server that reports changes.
func (u Untracked) Log(l *slog.Logger) {
	level, text := slog.LevelWarn, "a Redis does not report changes: values are kept for cache_max_age_ms, whatever happens to their keys"
	switch {
	case u.Err == nil:
		l.Info("a Redis reports changes now", "endpoint", u.Endpoint.Name)
		return
	case u.Endpoint.Policy.Cache.Required:
		level, text = slog.LevelError, "a Redis does not report changes, as cache_require demands: nothing is kept in memory, and the engine is not ready"
	}
	l.Log(context.Background(), level, text, "endpoint", u.Endpoint.Name, "error", u.Err)
}

// probePrefix begins no key. A server that refuses to report changes of this prefix would refuse others, too.
const probePrefix = "rankd:does the server tell of changes?"

// track makes the servers of an endpoint report changes, if its mode is tracked, and returns the tracker. The tracker
// connects to a server when a plan first reads from it, or at once if the endpoint requires reports. If a server
// refuses, its values are kept only by their age; if the endpoint requires reports, nothing is kept.
func (e *Async) track(d transport.Dialer, cfg *Config, ep *registry.Endpoint) changeTracker {
	cache := ep.Policy.Cache
	if !cache.Mode.Tracked() {
		return nil
	}
	table := e.given.Tables[ep.Index]
	var tracker changeTracker
	refused := false
	changed := func(err error) {
		if !errors.Is(err, resp.ErrTrackingRefused) {
			table.Rely(tracker)
			if err == nil && refused {
				refused = false
				cfg.OnUntracked(Untracked{ep, nil})
			}
			return
		}
		if !cache.Required {
			table.Rely(nil)
		}
		refused = true
		cfg.OnUntracked(Untracked{ep, err})
	}
	switch reads := cache.Mode == registry.CacheTrack; client := e.endpoints[ep.Index].redis.(type) {
	case *clusterclient.Client:
		tracker = client.Track(cache.MaxSilence, table, reads, changed)
	case *resp.Client:
		single := resp.NewTracker(e.loop, d, cfg.RedisOptions(ep), cache.MaxSilence, table, changed)
		if reads {
			single.TrackReads(client)
		}
		tracker = single
	}
	table.Rely(tracker)
	table.Watch(tracker)
	if cache.Required {
		_ = e.loop.Post(func() { tracker.Track([]string{probePrefix}) }) // Only a loop that has ended refuses.
	}
	return tracker
}

// A changeTracker makes the servers of an endpoint report changes: a *resp.Tracker, or a *clusterclient.Tracker. Loop
// only.
type changeTracker interface {
	rowcache.Source
	Close()
}

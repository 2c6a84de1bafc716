package eventloop

import (
	"sync"
	"sync/atomic"
	"time"
)

// PostsResult says how fast posted functions reach the loop and run. Immutable.
type PostsResult struct {
	Total     int     `json:"total_posts"`
	Producers int     `json:"producers"`
	WallMS    float64 `json:"wall_ms"` // from the first post to the run of the last
	PerSecond float64 `json:"posts_per_sec"`
	Memory
}

// Posts posts n functions from several goroutines at once, as fast as they can, and waits
// until all functions have run.
func Posts(n, producers int) (*PostsResult, error) {
	host, stop, err := start()
	if err != nil {
		return nil, err
	}
	defer stop()
	l := host.Loop()
	r := &PostsResult{Total: n, Producers: producers}
	r.StartKB = residentKB()

	ran, all := 0, make(chan struct{})
	count := func() { // on the loop
		if ran++; ran == n {
			close(all)
		}
	}
	var refused atomic.Bool
	var ready, live sync.WaitGroup
	ready.Add(producers)
	begin := make(chan struct{})
	for p := range producers {
		share := n / producers
		if p < n%producers {
			share++
		}
		live.Go(func() {
			ready.Done()
			<-begin
			for range share {
				if !l.Post(count) {
					refused.Store(true)
					return
				}
			}
		})
	}
	ready.Wait()
	began := time.Now()
	close(begin)
	live.Wait()
	if refused.Load() {
		return nil, errStopped
	}
	if n > 0 {
		<-all
	}
	wall := time.Since(began)
	r.WallMS, r.PerSecond, r.EndKB = millis(wall), perSecond(n, wall), residentKB()
	return r, nil
}

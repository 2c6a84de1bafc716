package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/resptest"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/rowset"
	"github.com/rankd/rankd/task"
)

// TestManyGoroutinesShareAnEngine: any goroutine may use an engine, and the plans, the registry
// and the task specs that its requests share. The race detector watches.
func TestManyGoroutinesShareAnEngine(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	const goroutines, each = 8, 6
	plans := []string{"complex_dag", "regex_plan", "reels_plan_a"}
	reference := map[string][]byte{} // by request; of the first model
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			e, err := rankd.Open(rankd.Options{Redis: redis.Addr(), Model: model})
			require.NoError(t, err)
			defer e.Close()
			answers := make([][each][]byte, goroutines)
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for i := range each {
						answer, err := e.Rank(t.Context(), sharedRequest(plans, g, i))
						if assert.NoError(t, err) {
							for c := range answer.Candidates() {
								answers[g][i] = fmt.Append(answers[g][i], c.ID(), " ")
							}
						}
					}
				})
			}
			all.Wait()
			for g := range goroutines {
				for i, got := range answers[g] {
					id := sharedRequest(plans, g, i).ID
					if model == enginetest.Models[0] {
						reference[id] = got
					}
					require.NotEmpty(t, got, id)
					assert.Equal(t, string(reference[id]), string(got), id)
				}
			}
		})
	}
}

// sharedRequest returns request i of goroutine g.
func sharedRequest(plans []string, g, i int) rankd.Request {
	return rankd.Request{ID: fmt.Sprintf("%d/%d", g, i), Plan: plans[(g+i)%len(plans)], UserID: int64(1 + g*10 + i)}
}

const meetPlan = `{"schema_version": 1, "plan_name": "meet", "outputs": ["m"],
  "nodes": [{"node_id": "m", "op": "test::meet", "inputs": []}]}`

// TestEnginesShareNoWorkers: the bodies of two engines with one worker each run at the same
// time.
func TestEnginesShareNoWorkers(t *testing.T) {
	for _, model := range enginetest.Models {
		t.Run(string(model), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a failed test waits that long
			defer cancel()
			var arrived sync.WaitGroup // bodies that have not begun
			arrived.Add(2)
			both := make(chan struct{})
			go func() {
				arrived.Wait()
				close(both)
			}()
			meet := task.Spec{Op: "test::meet", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
				arrived.Done()
				select {
				case <-both:
					return rowset.Dense(&rowset.Batch{IDs: []int64{1}}), nil
				case <-ctx.Done():
					return rowset.RowSet{}, errors.New("the other engine's body does not run")
				}
			}}
			var all sync.WaitGroup
			for range 2 {
				e, err := rankd.Open(rankd.Options{
					Model: model, CPUThreads: 1, IOThreads: 1, Plan: "meet", Tasks: []task.Spec{meet},
					Plans: fstest.MapFS{"meet.plan.json": {Data: []byte(meetPlan)}},
				})
				require.NoError(t, err)
				defer e.Close()
				all.Go(func() {
					_, err := e.Rank(t.Context(), rankd.Request{UserID: 1})
					assert.NoError(t, err)
				})
			}
			all.Wait()
		})
	}
}

// TestConnectionsServeOneCallEach: with two pools, each connection has one call at a time. All
// connections are used, whatever the number of workers. The server answers none before all are
// there.
func TestConnectionsServeOneCallEach(t *testing.T) {
	const workers, requests = 6, 12
	for _, connections := range []int{1, 3} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			server, err := resptest.NewServer(resptest.Followers)
			require.NoError(t, err)
			t.Cleanup(server.Close)
			var mu sync.Mutex
			held, most := map[int]int{}, 0 // calls that the server has, by connection
			all := make(chan struct{})
			server.Set(func(e resptest.Event) resptest.Fault {
				if e.Args == nil || e.Args[0] != "HGETALL" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				held[e.Conn]++
				assert.Equal(t, 1, held[e.Conn], "calls on connection %d", e.Conn)
				if len(held) > most {
					most = len(held)
					if most == connections {
						close(all)
					}
				}
				return func(w *resptest.Wire, reply []byte) {
					select {
					case <-all:
					case <-t.Context().Done():
					}
					mu.Lock()
					delete(held, e.Conn)
					mu.Unlock()
					w.Write(reply)
				}
			})
			e, err := rankd.Open(rankd.Options{
				Redis: server.Addr(), Model: rankd.Pool, IOThreads: workers, RedisConnections: connections,
			})
			require.NoError(t, err)
			defer e.Close()
			var waiting sync.WaitGroup
			for i := range requests {
				waiting.Go(func() {
					_, err := e.Rank(t.Context(), rankd.Request{Plan: "simple_viewer", UserID: int64(1 + i)})
					assert.NoError(t, err)
				})
			}
			waiting.Wait()
			assert.Equal(t, connections, most, "calls at once")
			assert.Equal(t, connections, server.Accepted())
		})
	}
}

// A body that ends its goroutine by runtime.Goexit fails its request, and the engine goes on.
func TestGoexitInABodyFailsItsRequest(t *testing.T) {
	odd := task.Spec{Op: "test::odd", Output: task.Source, Run: func(*task.Ctx) (rowset.RowSet, error) {
		runtime.Goexit()
		return rowset.RowSet{}, nil
	}}
	o := rankd.Options{Redis: "127.0.0.1:1", Tasks: []task.Spec{odd}, Plans: enginetest.Plans(map[string]string{
		"odd": `{"node_id": "out", "op": "test::odd", "inputs": []}`, "three": enginetest.ThreeRows})}
	enginetest.ForModels(t, o, func(t *testing.T, e *rankd.Engine) {
		for range 5 { // more often than there are workers
			_, err := e.Rank(t.Context(), rankd.Request{Plan: "odd", UserID: 1})
			require.ErrorContains(t, err, "runtime.Goexit")
			var failed *rankd.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "out", failed.Node)
		}
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "three", UserID: 1})
		require.NoError(t, err)
		assert.Equal(t, 3, a.Len())
	})
}

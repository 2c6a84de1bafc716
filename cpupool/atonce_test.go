package cpupool

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// N workers run exactly N functions at once. Each function waits on its worker. The functions
// that have begun are all that the workers run at once, when all goroutines wait. The pools are
// not closed: pond closes them on a pool of the whole process, which a bubble must not touch.
// Their workers end when nothing is queued.
func TestAsManyAtOnceAsWorkers(t *testing.T) {
	const more = 5
	for _, workers := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newHandLoop()
				p := New(l, Config{Workers: workers})
				submit := func(work func()) {
					require.NoError(t, p.Submit(&Job{Work: work}))
					l.endIteration() // the end of an iteration, when workers start
				}
				var begun atomic.Int32
				release := make(chan struct{})
				for range workers + more {
					submit(func() {
						begun.Add(1)
						<-release
					})
				}
				synctest.Wait()
				assert.Equal(t, int32(workers), begun.Load(), "at once")
				release <- struct{}{}
				synctest.Wait()
				assert.Equal(t, int32(workers+1), begun.Load(), "one takes the place of one")
				close(release)
				synctest.Wait()
				assert.Equal(t, int32(workers+more), begun.Load())
			})
		})
	}
}

package scheduler

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/task"
)

// Hundreds of nodes are in flight at a time, so their size counts. At 256 requests in flight,
// some 200 bytes more per node cost a tenth of the throughput. A field that few nodes need
// belongs elsewhere: to the request, the engine, or the rare part of a task.Ctx.
func TestANodeInFlightIsSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(task.Ctx{}), uintptr(208))
	assert.LessOrEqual(t, unsafe.Sizeof(asyncJob{}), uintptr(480))
	assert.LessOrEqual(t, unsafe.Sizeof(loopBody{}), uintptr(192))
	assert.LessOrEqual(t, unsafe.Sizeof(resp.Call{}), uintptr(288))
	assert.LessOrEqual(t, unsafe.Sizeof(run{}), uintptr(456))
	assert.LessOrEqual(t, unsafe.Sizeof(nodeState{}), uintptr(64))
}

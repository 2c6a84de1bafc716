package compiler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Reading and parsing have a separate time limit. A plan for which they took nearly all of it
// still has the full time for its code.
func TestTheTimeOfAPlan(t *testing.T) {
	const limit = 10 * time.Second
	begun := time.Unix(1000, 0)
	look := func(k *timekeeper, after time.Duration, running bool) verdict {
		return k.look(begun.Add(after), running)
	}

	k := &timekeeper{limit: limit, begun: begun}
	assert.Equal(t, inTime, look(k, 9*time.Second, false))
	assert.Equal(t, inTime, look(k, 9500*time.Millisecond, true), "the code begins")
	assert.Equal(t, inTime, look(k, 19*time.Second, true), "9.5 s of code, 19 s in all")
	assert.Equal(t, due, look(k, 19501*time.Millisecond, true))
	assert.Equal(t, inTime, look(k, 19502*time.Millisecond, true), "said once")
	assert.Equal(t, overdue, look(k, 19501*time.Millisecond+interruptGrace, true))

	k = &timekeeper{limit: limit, begun: begun}
	assert.Equal(t, due, look(k, limit+1, false), "reading is bounded, too")
	assert.Equal(t, overdue, look(k, limit+interruptGrace+1, false))
}

package peers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKeys(t *testing.T) {
	var k keys
	for range 2 { // the second time in memory that was used before
		k.reset()
		var got []string
		ids := []int64{1, -5, math.MinInt64, math.MaxInt64, 0}
		for _, id := range ids {
			k.add("follow:", id)
		}
		text := k.text()
		for i := range ids {
			start, end := k.bounds(i)
			got = append(got, text[start:end])
		}
		assert.Equal(t, []string{
			"follow:1", "follow:-5", "follow:-9223372036854775808", "follow:9223372036854775807", "follow:0",
		}, got)
	}
}

// TestKeysOutliveReset: the client may still hold keys when the batch's memory is used again.
func TestKeysOutliveReset(t *testing.T) {
	var k keys
	k.add("user:", 1)
	text := k.text()
	k.reset()
	k.add("media", 7)
	assert.Equal(t, "user:1", text)
}

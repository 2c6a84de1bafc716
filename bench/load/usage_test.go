package load

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want time.Duration
		err  bool
	}{
		"Plain":      {text: "42 (redis-server) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 6 0 1 2 3", want: 2 * time.Second},
		"OddName":    {text: "42 (a ) b (c)) R 1 42 42 0 -1 4194560 900 0 0 0 7 3 0 0 20 0 6 0 1", want: 100 * time.Millisecond},
		"Short":      {text: "42 (redis-server) S 1 42", err: true},
		"NoNumber":   {text: "42 (x) S 1 42 42 0 -1 4194560 900 0 0 0 seven 3 0", err: true},
		"Empty":      {text: "", err: true},
		"OnlyAParen": {text: ")", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(tc.text))
			assert.Equal(t, tc.err, err != nil, "%v", err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (redis-server) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 0"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseStat(text); err == nil {
			assert.Contains(t, string(text), " ")
		}
	})
}

var kept []byte // on the heap

func TestUsageCountsAllocationsExactly(t *testing.T) {
	before := ReadUsage()
	for range 100 {
		kept = make([]byte, 4096)
	}
	used := ReadUsage().Since(before)
	assert.GreaterOrEqual(t, used.Allocs, uint64(100))
	assert.Less(t, used.Allocs, uint64(1000), "little else is going on")
	assert.GreaterOrEqual(t, used.AllocBytes, uint64(100*4096))
}

func TestUsageOfThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	assert.Positive(t, ReadUsage().CPU)
	assert.Greater(t, ReadUsage().RSSBytes, uint64(1<<20))
	_, err := ProcessCPU(os.Getpid())
	require.NoError(t, err)
	_, err = ProcessCPU(-1)
	assert.Error(t, err)
}

func TestTrafficSub(t *testing.T) {
	assert.Equal(t, Traffic{1, 5, 2, 3, 4}, Traffic{11, 55, 22, 33, 44}.Sub(Traffic{10, 50, 20, 30, 40}))
}

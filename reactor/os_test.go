package reactor

import (
	"os"
	"runtime"
	"syscall"
	"testing"

	gneterrors "github.com/panjf2000/gnet/v2/pkg/errors"
	"github.com/stretchr/testify/require"
)

var errShutdown = gneterrors.ErrEngineShutdown

// descriptors returns how many descriptors the process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	dir := "/proc/self/fd"
	if runtime.GOOS != "linux" {
		dir = "/dev/fd"
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	return len(entries)
}

// allowNoDescriptors keeps the process from opening any more descriptors until the test ends.
func allowNoDescriptors(t testing.TB) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
}

package looptest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and then fails if a goroutine or a descriptor is left.
// It is the TestMain of a package that starts loops:
//
//	func TestMain(m *testing.M) { looptest.Main(m) }
func Main(m *testing.M) {
	before := openDescriptors()
	status := m.Run()
	if status == 0 {
		status = report(leakedGoroutines(), leakedDescriptors(before))
	}
	os.Exit(status)
}

// report prints the problems and returns the exit status.
func report(problems ...error) (status int) {
	for _, err := range problems {
		if err != nil {
			fmt.Fprintf(os.Stderr, "after the tests: %v\n", err)
			status = 1
		}
	}
	return status
}

// leakedGoroutines waits a moment for goroutines to end and reports those that do not.
// It ignores two goroutines of gnet's worker pool, which live as long as the process.
func leakedGoroutines() error {
	return goleak.Find(
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

// settleTime is how long a descriptor may stay open after the tests. gnet closes its
// poller's descriptors after it has reported its end.
const settleTime = time.Second

// leakedDescriptors reports open descriptors that are not in before. It reports none on
// systems that do not list them.
func leakedDescriptors(before []string) error {
	var leaked []string
	for deadline := time.Now().Add(settleTime); ; time.Sleep(time.Millisecond) {
		leaked = slices.DeleteFunc(openDescriptors(), func(fd string) bool { return slices.Contains(before, fd) })
		if len(leaked) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d leaked descriptors: %s", len(leaked), strings.Join(leaked, ", "))
		}
	}
}

// openDescriptors lists this process's descriptors, each with its target: a number that is
// closed and opened again on another target counts as a new descriptor.
func openDescriptors() []string {
	// Go's own poller opens descriptors with the first pipe or socket.
	if r, w, err := os.Pipe(); err == nil {
		_ = r.Close()
		_ = w.Close()
	}
	const folder = "/proc/self/fd"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var open []string
	for _, e := range entries {
		// The descriptor that read the folder is closed by now.
		if target, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil {
			open = append(open, e.Name()+" -> "+target)
		}
	}
	return open
}

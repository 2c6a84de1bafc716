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

// Main runs the tests of a package and then fails if they have left a goroutine or
// a descriptor behind. It is the TestMain of a package that starts loops:
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

// report prints what is wrong, and returns the exit status.
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
// A pool of workers that gnet brings along runs two from its initialization on, for as
// long as the process lives.
func leakedGoroutines() error {
	return goleak.Find(
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	)
}

// settleTime is how long a descriptor may stay open after the tests: gnet closes those
// of its poller after it has told that it is done.
const settleTime = time.Second

// leakedDescriptors reports the descriptors that are open and are not in before. Where
// the system does not list them, there are none.
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

// openDescriptors lists this process's descriptors, each with what it refers to: a
// number that was closed and given to something else is another one.
func openDescriptors() []string {
	// Go's own poller has descriptors from the first pipe or socket on.
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
		// The one that the folder was read with is closed by now.
		if target, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil {
			open = append(open, e.Name()+" -> "+target)
		}
	}
	return open
}

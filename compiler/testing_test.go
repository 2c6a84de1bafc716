package compiler_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/compiler"
)

// runTests runs a file of tests with a host. It returns the result and the names of the calls.
func runTests(t *testing.T, config compiler.Config, text string, host compiler.TestHost) (r compiler.Result, calls []string) {
	t.Helper()
	c := newCompilerOf(t, config)
	for range 2 { // the second time in the same child, or in a new one if that has ended
		calls = nil
		var err error
		r, err = c.Test(t.Context(), compiler.Source{Folder: t.TempDir(), File: "a.plan.test.ts", Text: []byte(text)},
			func(ctx context.Context, call *compiler.TestCall) (any, error) {
				calls = append(calls, call.Name)
				return host(ctx, call)
			})
		require.NoError(t, err)
	}
	return r, calls
}

const testImport = `import { rank, redis, service, test } from "@ranking-dsl/test";
`

// TestTestsAreBounded: tests that take too much are stopped as plans are, in their own code and
// in functions for services.
func TestTestsAreBounded(t *testing.T) {
	t.Parallel()
	host := func(_ context.Context, call *compiler.TestCall) (any, error) {
		if call.Name == compiler.TestRank {
			if _, err := call.Serve("s", []byte(`{"ids": [1]}`)); err != nil {
				return nil, err
			}
			return map[string]any{"candidates": []any{}}, nil
		}
		return call.Name == compiler.TestBegins, nil
	}
	for _, c := range []struct {
		name, body, code, message string
		config                    compiler.Config
	}{
		{"a loop", `for (;;) {}`, "timeout", "the test computes longer than 1s without a request", compiler.Config{Timeout: time.Second}},
		{"a pattern", slow["backtracking"], "timeout", "the test computes longer than 1s without a request", compiler.Config{Timeout: time.Second}},
		{"a loop of a service", `service("s", () => { for (;;) {} }); rank({});`, "timeout", "the test computes longer than 1s without a request",
			compiler.Config{Timeout: time.Second}},
		{"a pattern of a service", `service("s", () => ` + slow["backtracking"] + `); rank({});`, "timeout", "the test computes longer than 1s without a request",
			compiler.Config{Timeout: time.Second}},
		{"an array", large["growing_array"], "memory", "the test needs more than 32 MiB", compiler.Config{Timeout: time.Minute, MemoryBytes: 32 << 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, calls := runTests(t, c.config, testImport+`test("a", () => { `+c.body+` });`, host)
			require.Len(t, r.Errors, 1)
			assert.Equal(t, c.code, r.Errors[0].Code, r.Errors[0].String())
			assert.Equal(t, c.message, r.Errors[0].Message)
			assert.Contains(t, []int{1, 2}, r.Errors[0].Line, "1: a busy machine ended the child before it could say where")
			assert.NotContains(t, calls, compiler.TestEnds)
		})
	}
}

// TestWaitingIsFree: the time in which the host works does not count, however often a test
// calls it.
func TestWaitingIsFree(t *testing.T) {
	t.Parallel()
	r, calls := runTests(t, compiler.Config{Timeout: 5 * time.Second}, testImport+`test("a", () => { rank({}); rank({}); });`,
		func(_ context.Context, call *compiler.TestCall) (any, error) {
			if call.Name == compiler.TestRank {
				time.Sleep(5500 * time.Millisecond) // the work of the host
				return map[string]any{"candidates": []any{}}, nil
			}
			return call.Name == compiler.TestBegins, nil
		})
	assert.Empty(t, r.Errors)
	assert.Equal(t, []string{compiler.TestBegins, compiler.TestData, compiler.TestRank, compiler.TestRank, compiler.TestEnds}, calls)
}

// TestHostsErrors: an error of the host is an exception, which a test may catch. Serve ends
// with the call.
func TestHostsErrors(t *testing.T) {
	t.Parallel()
	var late func(string, []byte) ([]byte, error)
	var failure compiler.TestFailure
	r, _ := runTests(t, compiler.Config{}, testImport+`test("a", () => { service("s", (r) => ({ got: r.n })); try { rank({}); } catch (e) { throw new Error("caught " + e.message); } });`,
		func(_ context.Context, call *compiler.TestCall) (any, error) {
			switch call.Name {
			case compiler.TestRank:
				late = call.Serve
				body, err := call.Serve("s", []byte(`{"n": 9007199254740993}`))
				assert.NoError(t, err)
				return nil, errors.New("no " + string(body))
			case compiler.TestEnds:
				_, err := late("s", []byte(`{}`))
				assert.ErrorContains(t, err, "has ended")
				assert.NoError(t, json.Unmarshal(call.Arg, &failure))
			}
			return call.Name == compiler.TestBegins, nil
		})
	assert.Empty(t, r.Errors)
	assert.Equal(t, `caught no {"got":9007199254740993}`, failure.Message)
}

// TestTestEndsWithItsContext: nobody waits for a test whose caller has gone.
func TestTestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	c := newCompiler(t)
	_, err := c.Test(ctx, compiler.Source{Folder: t.TempDir(), File: "a.plan.test.ts", Text: []byte(testImport + `test("a", () => { for (;;) rank({}); });`)},
		func(_ context.Context, call *compiler.TestCall) (any, error) {
			if call.Name == compiler.TestRank {
				cancel(gone)
				return map[string]any{"candidates": []any{}}, nil
			}
			return call.Name == compiler.TestBegins, nil
		})
	assert.ErrorIs(t, err, gone)
}

package cli

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The command reports all faults of its flags at once, before it starts anything.
func TestServingBenchmarksCheckTheirFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"serve", "--fronts", "gopher", "--clients", "siege", "--rounds", "0", "--connections", "65", "--duration", "0s", "--warmup", "-1s"}, []string{
			`--fronts is resp or http, not "gopher"`, `--clients is one of redis-benchmark, wrk, ab, not "siege"`,
			"--rounds is a number from 1 to 1000, not 0", "--connections is a number from 1 to 64, not 65", "--duration is a time from 1ns to 1h0m0s, not 0s",
			"--warmup is a time from 0s to 1h0m0s, not -1s"}},
		{[]string{"overload", "--fronts", "gopher", "--scenario", "calm", "--rounds", "0", "--cpu_threads", "0", "--duration", "2h", "--times", "0", "--warmup", "-1s"}, []string{
			`--fronts is resp or http, not "gopher"`, `--scenario is busy or concat_plan, not "calm"`, "--rounds is a number from 1 to 1000, not 0",
			"--cpu_threads is a number from 1 to 1024, not 0", "--duration is a time from 1ns to 1h0m0s, not 2h0m0s", "--warmup is a time from 0s to 1h0m0s, not -1s",
			"--times is a number above 0 and up to 100, not 0"}},
		{[]string{"serve", "--plan_name", "nowhere"}, []string{"nowhere"}},
	} {
		p := Program{Stdout: io.Discard, Stderr: io.Discard}
		cmd := p.Command(context.Background())
		cmd.SetArgs(tc.args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.Execute()
		for _, want := range tc.want {
			assert.ErrorContains(t, err, want)
		}
	}
}

// A client that the user names must be installed. A default client need not be.
func TestForeignClientsThatAreNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o := fronts{clients: []string{"wrk"}}
	assert.ErrorContains(t, o.check(true), "--clients: ")
	assert.NoError(t, o.check(false))
	assert.Empty(t, o.clients)
}

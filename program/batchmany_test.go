package program

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/batch"
	"github.com/rankd/rankd/internal/devredis"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

var (
	batchUsers = flag.Int("batch_users", 3000, "how many users TestABatchOfMany ranks")
	batchBound = flag.Int("batch_bound", 40_000, "how many commands a second TestABatchOfMany allows at first, for a tenth of the users")
)

// TestABatchOfMany ranks users with a plan of the demo, from the keys of a real Redis to lists
// in it. It first runs a tenth of them. Redis gets no more commands than allowed. The memory of
// the batch does not grow with its users.
func TestABatchOfMany(t *testing.T) {
	server := testworld.StartRedis(t)
	require.NoError(t, devredis.LoadUsers(t.Context(), server.Addr, *batchUsers))
	dir := t.TempDir()
	info := func(section, field string) (n int) {
		require.NoError(t, devredis.WithClient(t.Context(), server.Addr, func(c *blocking.Client) error {
			var b resp.Batch
			b.Cmd("INFO", section)
			return c.Do(&b, 0, func(replies resp.Replies) (err error) {
				found := regexp.MustCompile(field + `:(\d+)`).FindSubmatch(replies.At(0).Bytes())
				n, err = strconv.Atoi(string(found[1]))
				return err
			})
		}))
		return n
	}
	run := func(name string, args ...string) (sum batch.Summary, resident []int) {
		cmd := exec.Command(os.Args[0], append([]string{"batch", "--plan_name", "concat_plan", "--redis", server.Addr, "--out", "redis://" + server.Addr,
			"--out_key", name, "--checkpoints", filepath.Join(dir, name+".checkpoints")}, args...)...)
		cmd.Env = append(os.Environ(), "RANKD_TEST_RUN_MAIN=1")
		cmd.Stderr = os.Stderr
		said, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.NoError(t, json.NewDecoder(said).Decode(&sum))
		}()
		for waits := true; waits; {
			select {
			case <-ended:
				waits = false
			case <-time.After(50 * time.Millisecond):
				if kB, ok := residentOf(cmd.Process.Pid); ok {
					resident = append(resident, kB)
				}
			}
		}
		require.NoError(t, cmd.Wait())
		t.Logf("%s: %d users in %.0f s, %.0f a second, %v of processor time each, at most %d MB resident", name, sum.Users, sum.Seconds, sum.PerSecond,
			(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())/time.Duration(sum.Users), highest(resident)>>10)
		return sum, resident
	}

	before := info("stats", "total_commands_processed")
	sum, _ := run("bounded", "--users", "redis:user:{user}", "--shard", "0/10", "--out_version", "1", "--max_commands_per_second", strconv.Itoa(*batchBound))
	sent := info("stats", "total_commands_processed") - before
	t.Logf("%.0f commands a second of %d", float64(sent)/sum.Seconds, *batchBound)
	const underWay = (batch.DefaultInFlight + 16) * 12 // commands of users that have begun
	assert.LessOrEqual(t, float64(sent), float64(*batchBound)*(sum.Seconds+0.1)+underWay+4000, "the lists of some users leave at once")

	sum, resident := run("all", "--users", "redis:user:{user}")
	assert.Equal(t, *batchUsers, sum.Users)
	assert.Zero(t, sum.Failed)
	assert.True(t, sum.Current)
	const warm = 20 // samples
	if quarter := len(resident) / 4; quarter > warm {
		early, late := highest(resident[:quarter]), highest(resident[len(resident)-quarter:])
		t.Logf("resident: %d MB in the first quarter, %d MB in the last", early>>10, late>>10)
		assert.LessOrEqual(t, late, early+early/4)
	}
}

// residentOf returns the resident memory of a process in kB.
func residentOf(pid int) (kB int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(`VmRSS:\s+(\d+)`).FindSubmatch(text)
	if err != nil || found == nil {
		return 0, false
	}
	kB, err = strconv.Atoi(string(found[1]))
	return kB, err == nil
}

func highest(values []int) (most int) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

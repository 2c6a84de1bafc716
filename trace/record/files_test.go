package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// childEnv makes this program write files to a folder until it is killed, or has no room.
const childEnv = "RANKD_RECORD_CHILD"

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(childEnv)); len(words) == 2 {
		child(words[0], words[1])
	}
	os.Exit(m.Run())
}

// big is the request of number n, of some 20 KB.
func big(n int) *Request {
	q := request(byte(n), int64(n))
	q.RequestID = strconv.Itoa(n)
	q.Trace = make([]byte, 20_000)
	r := seeded(q.RequestID)
	for i := range q.Trace {
		q.Trace[i] = byte(r.Uint32())
	}
	return q
}

func child(what, dir string) {
	const room = 700_000
	if what == "full" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: room, Max: room}); err != nil {
			log.Fatal(err)
		}
	}
	size := int64(2 * room)
	if what == "kill" {
		size = room / 2
	}
	f, err := NewFiles(dir, size, func() Header { return Header{Sample: 1} })
	if err != nil {
		log.Fatal(err)
	}
	failed := 0
	for n := range 1 << 30 {
		err := f.Add(big(n), world{})
		if n%7 == 6 {
			err = errors.Join(err, f.Flush())
		}
		switch {
		case err != nil && (what == "kill" || !errors.Is(err, syscall.EFBIG)):
			log.Fatal(err)
		case err != nil:
			failed++
		case n%7 == 6:
			written, _ := f.Counts()
			fmt.Println(written)
		}
		if failed == 3 {
			written, lost := f.Counts()
			fmt.Println(written, lost, n+1)
			os.Exit(0)
		}
	}
}

// runChild runs a child until it ends, or until it has said a line so often; then it is killed. It returns the last line.
func runChild(t *testing.T, what, dir string, lines int) (last string) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		if last = in.Text(); n == lines {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	err = cmd.Wait()
	assert.Equal(t, what == "kill", err != nil, err)
	return last
}

// readFolder returns the requests of all files of a folder, how many are torn, and how many bytes behind the last whole frames.
func readFolder(t *testing.T, dir string) (all []*Request, files, torn int, bytes int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "record-*"+Ending))
	require.NoError(t, err)
	for _, path := range paths {
		r, err := Open(path, ReadOptions{})
		require.NoError(t, err)
		for {
			q, err := r.Next()
			if end := (*Torn)(nil); errors.As(err, &end) {
				torn++
				bytes += end.Bytes
				break
			}
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			g, err := r.Generation(q.Generation)
			require.NoError(t, err)
			require.Equal(t, q.Generation, g.Digest)
			all = append(all, q)
		}
		require.NoError(t, r.Close())
	}
	return all, len(paths), torn, bytes
}

// TestAWriterThatIsKilled: kill -9 leaves what was written, in files that stand alone; one file is torn.
func TestAWriterThatIsKilled(t *testing.T) {
	for _, lines := range []int{0, 3, 12} {
		dir := t.TempDir()
		last := runChild(t, "kill", dir, lines)
		written, err := strconv.Atoi(last)
		require.NoError(t, err)
		all, files, torn, _ := readFolder(t, dir)
		assert.GreaterOrEqual(t, len(all), written)
		assert.LessOrEqual(t, torn, 1)
		assert.GreaterOrEqual(t, files, 1+lines/5)
		for n, q := range all {
			require.Equal(t, big(n), q)
		}
	}
}

// TestNoRoom: a disk that is full leaves whole frames, the next requests go to another file, and what is lost is counted. A limit of the size of files
// stands for the disk.
func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	var written, lost, tried int
	_, err := fmt.Sscan(runChild(t, "full", dir, -1), &written, &lost, &tried)
	require.NoError(t, err)
	all, files, torn, cut := readFolder(t, dir)
	assert.Len(t, all, written)
	assert.Equal(t, tried, written+lost)
	assert.NotZero(t, lost)
	assert.Equal(t, []int{3, 3, 0}, []int{files, torn, int(cut)})
	for _, q := range all {
		n, err := strconv.Atoi(q.RequestID)
		require.NoError(t, err)
		require.Equal(t, big(n), q)
	}
}

// TestAHeaderThatIsRefused leaves no file.
func TestAHeaderThatIsRefused(t *testing.T) {
	dir := t.TempDir()
	f, err := NewFiles(dir, 1, func() Header { return Header{Sample: 2} })
	require.ErrorContains(t, err, "from 0 to 1")
	require.Nil(t, f)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestFilesOfAFolder: a file ends by its size, one that is removed has a successor, and a file that is written is locked.
func TestFilesOfAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	f, err := NewFiles(dir, 50_000, func() Header { return Header{Sample: 1} })
	require.NoError(t, err)
	for n := range 12 {
		require.NoError(t, f.Add(big(n), world{}))
		require.NoError(t, f.Flush())
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	latest := paths[len(paths)-1]
	_, err = Purge(latest, "0", ReadOptions{})
	require.ErrorIs(t, err, syscall.EWOULDBLOCK)
	require.NoError(t, os.Remove(latest))
	require.NoError(t, f.Add(big(12), world{}))
	require.NoError(t, f.Close())
	all, files, torn, _ := readFolder(t, dir)
	assert.Equal(t, []int{4, 0}, []int{files, torn})
	assert.Len(t, all, 10, "of 13; three were in the file that was removed")
	written, lost := f.Counts()
	assert.Equal(t, []uint64{13, 0}, []uint64{written, lost})
}

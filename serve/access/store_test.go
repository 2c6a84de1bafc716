package access

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
)

// store returns a store whose file has the text, and a function that replaces the text.
func store(t testing.TB, text string) (s *Store, replace func(text string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.toml")
	replace = func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	replace(text)
	s, err := Open(path)
	require.NoError(t, err)
	return s, replace
}

func reload(t testing.TB, s *Store) {
	t.Helper()
	changed, err := s.Reload()
	require.NoError(t, err)
	require.True(t, changed)
}

func TestLookup(t *testing.T) {
	s, _ := store(t, servetest.Token("feed", "t1", servetest.AllPlans)+servetest.Token("ops", "t2", servetest.AllPlans))
	assert.Equal(t, []string{"feed", "ops"}, s.Names())
	assert.Nil(t, s.Anonymous(), "a token is required")
	for token, want := range map[string]string{
		"t1": "feed", "t2": "ops", "t3": "", "": "", "T1": "", "t1 ": "", servetest.Digest("t1"): "", string(make([]byte, 32)): "",
	} {
		c, ok := s.Lookup([]byte(token))
		assert.Equal(t, want != "", ok, "%q", token)
		if ok {
			assert.Equal(t, want, c.Name())
		} else {
			assert.Nil(t, c)
		}
	}
}

func TestLogin(t *testing.T) {
	s, _ := store(t, servetest.Token("feed", "t1", servetest.AllPlans)+servetest.Token("ops", "t2", servetest.AllPlans))
	for _, c := range []struct {
		name, token string
		want        bool
	}{
		{"feed", "t1", true}, {"default", "t1", true}, {"ops", "t1", false}, {"", "t1", false}, {"feed", "t2", false}, {"feed", "no", false}, {"default", "", false},
	} {
		_, ok := s.Login([]byte(c.name), []byte(c.token))
		assert.Equal(t, c.want, ok, c)
	}
}

// TestAPartOfADigestOpensNothing: a store finds an entry by a part of the digest. That part
// does not prove the token.
func TestAPartOfADigestOpensNothing(t *testing.T) {
	s, _ := store(t, servetest.Token("feed", "t1", servetest.AllPlans))
	c, ok := s.Lookup([]byte("t1"))
	require.True(t, ok)
	near := c.digest
	for i := range near {
		near[i] ^= 1
		_, ok := s.table.Load().find(&near)
		assert.False(t, ok, "byte %d differs", i)
		near[i] ^= 1
	}
	_, ok = s.table.Load().find(&near)
	assert.True(t, ok)
}

func TestWithoutAFileEverybodyIsOne(t *testing.T) {
	c, err := NewCaller(Rules{Name: Anonymous})
	require.NoError(t, err)
	s := Anyone(c)
	assert.Same(t, c, s.Anonymous())
	_, ok := s.Lookup([]byte("t"))
	assert.False(t, ok)
	renewed, ok := s.Renew(c)
	assert.True(t, ok)
	assert.Same(t, c, renewed)
	changed, err := s.Reload()
	assert.False(t, changed)
	assert.NoError(t, err)
}

// TestReload follows three callers through changes of the file.
func TestReload(t *testing.T) {
	s, replace := store(t, servetest.Token("a", "ta", servetest.AllPlans)+servetest.Token("b", "tb", servetest.AllPlans)+servetest.Token("c", "tc", servetest.AllPlans))
	changed, err := s.Reload()
	require.NoError(t, err)
	assert.False(t, changed, "nothing has changed")
	callers := map[string]*Caller{}
	for _, name := range s.Names() {
		callers[name], _ = s.Lookup([]byte("t" + name))
	}

	// a stays, b gets other rights, c is revoked, d is new.
	replace(servetest.Token("b", "tb", `plans = ["x"]`) + servetest.Token("a", "ta", servetest.AllPlans) + servetest.Token("d", "td", servetest.AllPlans))
	reload(t, s)
	a, ok := s.Renew(callers["a"])
	assert.True(t, ok)
	assert.Same(t, callers["a"], a, "an entry that stays keeps its caller")
	b, ok := s.Renew(callers["b"])
	require.True(t, ok)
	assert.True(t, callers["b"].MayPlan("y"))
	assert.False(t, b.MayPlan("y"), "the rights of now")
	_, ok = s.Renew(callers["c"])
	assert.False(t, ok, "revoked")
	_, ok = s.Lookup([]byte("tc"))
	assert.False(t, ok)
	_, ok = s.Lookup([]byte("td"))
	assert.True(t, ok)

	// A token that comes back is valid again.
	replace(servetest.Token("c", "tc", servetest.AllPlans))
	reload(t, s)
	_, ok = s.Renew(callers["c"])
	assert.True(t, ok)
	_, ok = s.Renew(b)
	assert.False(t, ok)
}

// TestABoundOnRequestsUnderWay: a new entry for the same token also counts the requests that
// began before.
func TestABoundOnRequestsUnderWay(t *testing.T) {
	s, replace := store(t, servetest.Token("a", "ta", servetest.AllPlans, "max_inflight = 2")+servetest.Token("b", "tb", servetest.AllPlans))
	a, _ := s.Lookup([]byte("ta"))
	b, _ := s.Lookup([]byte("tb"))
	for range 100 {
		require.True(t, b.Begin(), "no bound")
	}
	require.True(t, a.Begin())
	require.True(t, a.Begin())
	require.False(t, a.Begin())
	a.End()
	require.True(t, a.Begin(), "a refusal is not counted")

	replace(servetest.Token("a", "ta", servetest.AllPlans, "max_inflight = 1"))
	reload(t, s)
	now, ok := s.Renew(a)
	require.True(t, ok)
	require.NotSame(t, a, now)
	a.End()
	require.False(t, now.Begin(), "one that began before is under way")
	a.End()
	require.True(t, now.Begin())
}

// TestABrokenFileChangesNothing: the tokens stay until the file is valid again.
func TestABrokenFileChangesNothing(t *testing.T) {
	s, replace := store(t, servetest.Token("a", "ta", servetest.AllPlans))
	before, _ := s.Lookup([]byte("ta"))
	for name, spoil := range map[string]func(){
		"malformed": func() { replace("[[token") },
		"empty":     func() { replace("# to be written") },
		"writable": func() {
			replace(servetest.Token("b", "tb", servetest.AllPlans))
			require.NoError(t, os.Chmod(s.path, 0o666))
		},
		"removed": func() { require.NoError(t, os.RemoveAll(s.path)) },
	} {
		t.Run(name, func(t *testing.T) {
			spoil()
			changed, err := s.Reload()
			assert.Error(t, err)
			assert.False(t, changed)
			after, ok := s.Renew(before)
			assert.True(t, ok)
			assert.Same(t, before, after)
			require.NoError(t, os.RemoveAll(s.path))
		})
	}
	replace(servetest.Token("b", "tb", servetest.AllPlans))
	reload(t, s)
	assert.Equal(t, []string{"b"}, s.Names())
}

// TestNoPrintedFormHasADigest: a caller shows no digest in a log.
func TestNoPrintedFormHasADigest(t *testing.T) {
	s, _ := store(t, servetest.Token("a", "ta", servetest.AllPlans))
	c, _ := s.Lookup([]byte("ta"))
	for _, format := range []string{"%v", "%+v", "%s", "%#v", "%x", "%d"} {
		printed := fmt.Sprintf(format, c)
		assert.Equal(t, "a", printed, format)
	}
}

// TestReloadWhileOthersAsk is for the race detector. A token that is in every file is always
// found.
func TestReloadWhileOthersAsk(t *testing.T) {
	always := servetest.Token("always", "t", servetest.AllPlans)
	s, replace := store(t, always)
	var done sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		done.Go(func() {
			c, ok := s.Lookup([]byte("t"))
			for ok {
				select {
				case <-stop:
					return
				default:
					_, _ = s.Lookup([]byte("sometimes"))
					c, ok = s.Renew(c)
				}
			}
			t.Error("the token was not found")
		})
	}
	for i := range 50 {
		text := always
		if i%2 == 0 {
			text = servetest.Token("sometimes", "sometimes", servetest.AllPlans) + servetest.Token("always", "t", `plans = ["x"]`)
		}
		replace(text)
		reload(t, s)
	}
	close(stop)
	done.Wait()
}

func TestLookupAllocatesNothing(t *testing.T) {
	s, _ := store(t, servetest.Token("a", "ta", servetest.AllPlans))
	token, wrong := []byte("ta"), []byte("tb")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c, ok := s.Lookup(token)
		_, found := s.Lookup(wrong)
		_, valid := s.Renew(c)
		if !ok || found || !valid {
			panic("lookup")
		}
	}))
}

func BenchmarkLookup(b *testing.B) {
	s, _ := store(b, servetest.Token("a", "ta", servetest.AllPlans))
	token := []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		s.Lookup(token)
	}
}

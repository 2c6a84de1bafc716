package rankd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testworld"
	"github.com/rankd/rankd/serve/servetest"
)

// A master that sentinels know is killed, and its replica takes over: all models follow within a second of the election. Then it is moved by hand, and no request
// gets an answer from the old one.
func TestAMasterThatSentinelsMove(t *testing.T) {
	for _, model := range models {
		t.Run(string(model), func(t *testing.T) { aMasterThatSentinelsMove(t, model, "") })
	}
	for _, mode := range trackedModes {
		t.Run("cache "+mode, func(t *testing.T) { aMasterThatSentinelsMove(t, rankd.Reactor, "cache = \""+mode+"\"\n") })
	}
}

func aMasterThatSentinelsMove(t *testing.T, model rankd.Model, policy string) {
	t.Parallel()
	const patience = 90 * time.Second // Sentinels on a busy machine do nothing for half a minute (TILT).
	s := testworld.StartRedisSentinels(t, 2, 2)
	s.Do(t, 0, "HSET", "user:1", "country", "DE")
	require.Eventually(t, func() bool { return s.Do(t, 1, "EXISTS", "user:1") == "1" }, 10*time.Second, 5*time.Millisecond)
	e := open(t, rankd.Options{Redis: s.Addr(), Model: model, Registry: cacheTables(policy), Plans: viewerPlan})
	country := func() (country string, err error) {
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
		if err != nil {
			return "", err
		}
		for c := range a.Candidates() {
			country, _ = c.String("country")
		}
		return country, nil
	}
	got, err := country()
	require.NoError(t, err)
	require.Equal(t, "DE", got)
	s.Nodes[0].Kill()
	says := func(node int, want string, args ...string) bool {
		text, err := s.Try(node, args...)
		return err == nil && strings.Contains(text, want)
	}
	named := func(node int) bool {
		return says(2, fmt.Sprint(s.Nodes[node].Port), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", testworld.MasterName)
	}
	var elected time.Time
	require.Eventually(t, func() bool {
		if elected.IsZero() && named(1) {
			elected = time.Now()
			s.Do(t, 1, "HSET", "user:1", "country", "FR")
		}
		got, err := country()
		return err == nil && got == "FR"
	}, patience, 10*time.Millisecond)
	require.False(t, elected.IsZero())
	t.Logf("the engine followed %v after the election", time.Since(elected))
	assert.Less(t, time.Since(elected), 5*time.Second, "a second on a machine that has nothing else to do")
	// The old master comes back as a replica, and is made the master again.
	s.Nodes[0].Restart(t)
	require.Eventually(t, func() bool {
		return says(0, "master_link_status:up", "INFO", "replication") || says(0, "none", "REPLICAOF", "127.0.0.1", fmt.Sprint(s.Nodes[1].Port))
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return says(2, "OK", "SENTINEL", "FAILOVER", testworld.MasterName) }, patience, 100*time.Millisecond)
	require.Eventually(t, func() bool { return named(0) && says(0, "0", "HSET", "user:1", "country", "PL") }, patience, 5*time.Millisecond)
	require.Eventually(t, func() bool {
		got, err := country()
		return err == nil && got == "PL"
	}, 10*time.Second, 10*time.Millisecond)
}

// Sentinels that want a user and a password, and that are reached through TLS, name the master on all models. One that refuses, or that is not trusted, is told of.
func TestSentinelsWithPasswordAndTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	servetest.WriteCertificate(t, cert, key, 1)
	secure := func(port string) []string {
		return []string{"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no", "--tls-replication", "yes"}
	}
	masterPort, sentinelPort := freePort(t), freePort(t)
	master := testworld.StartRedis(t, secure(masterPort)...)
	store(t, master.Addr, []string{"HSET", "user:1", "country", "DE"})
	conf, password := filepath.Join(dir, "sentinel.conf"), filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `sentinel monitor %s 127.0.0.1 %s 1
user default off
user asker on >s3cret ~* &+switch-master -@all +sentinel|master +subscribe +ping
`, testworld.MasterName, masterPort), 0o600))
	sentinel := testworld.StartRedis(t, append([]string{conf, "--sentinel"}, secure(sentinelPort)...)...)
	login := "sentinel_username=asker&sentinel_password_file=" + password
	trusted := "&tls_server_name=rankd&tls_ca=" + cert
	through := "rediss+sentinel://127.0.0.1:" + sentinelPort + "/" + testworld.MasterName + "?"
	plain := "rediss+sentinel://" + sentinel.Addr + "/" + testworld.MasterName + "?sentinel_tls=false&"
	for _, model := range models {
		t.Run(string(model), func(t *testing.T) {
			for _, url := range []string{through + login + trusted, plain + login + trusted} {
				e := open(t, rankd.Options{Redis: url, Model: model, Registry: cacheTables(""), Plans: viewerPlan})
				var country string
				require.Eventually(t, func() bool {
					a, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
					if err != nil {
						return false
					}
					for c := range a.Candidates() {
						country, _ = c.String("country")
					}
					return true
				}, 20*time.Second, 10*time.Millisecond)
				assert.Equal(t, "DE", country)
			}
			for url, want := range map[string]string{
				through + "sentinel_username=asker&sentinel_password=wrong" + trusted: "WRONGPASS",
				through + trusted[1:]:                        "NOAUTH",
				through + login:                              "certificate",
				plain + "sentinel_password=s3cret" + trusted: "WRONGPASS",
				"rediss+sentinel://" + sentinel.Addr + "/" + testworld.MasterName + "?" + login + trusted: "connect timeout",
			} {
				e := open(t, rankd.Options{Redis: url, Model: model, Registry: cacheTables(""), Plans: viewerPlan})
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "me", UserID: 1})
				require.ErrorContains(t, err, want, url)
				assert.NotContains(t, err.Error(), "s3cret")
			}
			_, err := rankd.Open(rankd.Options{Redis: through + "sentinel_password_file=/no/such/file", Model: model})
			require.ErrorContains(t, err, "sentinel_password_file")
		})
	}
}

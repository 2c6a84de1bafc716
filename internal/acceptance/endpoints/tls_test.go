package endpoints_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rankd/rankd/internal/testing/enginetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd"
	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/internal/testing/testworld"
	"github.com/rankd/rankd/rankdtest"
	"github.com/rankd/rankd/registry"
)

// tlsServer is a Redis behind TLS. It forwards the bytes that it gets.
type tlsServer struct {
	addr, redis string
	mu          sync.Mutex
	config      *tls.Config                  // nil: plain; guarded by mu
	between     func(client, redis net.Conn) // in place of handing on; nil: hands on; guarded by mu
	conns       []net.Conn                   // guarded by mu
}

func startTLS(t testing.TB, redis string, config *tls.Config) *tlsServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &tlsServer{addr: l.Addr().String(), redis: redis, config: config}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { s.serve(nc) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.cut()
		all.Wait()
	})
	return s
}

func (s *tlsServer) serve(nc net.Conn) {
	s.mu.Lock()
	config, between := s.config, s.between
	s.conns = append(s.conns, nc)
	s.mu.Unlock()
	defer nc.Close()
	if config != nil {
		nc = tls.Server(nc, config)
	}
	backend, err := net.Dial("tcp", s.redis)
	if err != nil {
		return
	}
	defer backend.Close()
	s.mu.Lock()
	s.conns = append(s.conns, backend)
	s.mu.Unlock()
	if between != nil {
		between(nc, backend)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(backend, nc); _ = backend.Close() })
	both.Go(func() { _, _ = io.Copy(nc, backend); _ = nc.Close() })
	both.Wait()
}

// cut ends all connections.
func (s *tlsServer) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nc := range s.conns {
		_ = nc.Close()
	}
	s.conns = nil
}

func (s *tlsServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// url returns the address with a query.
func (s *tlsServer) url(query string) string { return "rediss://" + s.addr + "?" + query }

// TestTLS ranks over TLS and in plain text, on all models, with connections that end in
// between.
func TestTLS(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	c := servetest.WriteCertificate(t, cert, key, 1)
	s := startTLS(t, redis.Addr(), &tls.Config{Certificates: []tls.Certificate{c.Certificate}})
	for _, model := range enginetest.Models {
		plain := enginetest.Open(t, rankd.Options{Redis: redis.Addr(), Model: model})
		safe := enginetest.Open(t, rankd.Options{Redis: s.url("tls_ca=" + cert), Model: model})
		infos, err := plain.Plans()
		require.NoError(t, err)
		for user := int64(1); user < 4; user++ {
			for _, info := range infos {
				want, err := plain.Rank(t.Context(), rankd.Request{Plan: info.Name, UserID: user})
				require.NoError(t, err)
				got, err := safe.Rank(t.Context(), rankd.Request{Plan: info.Name, UserID: user})
				require.NoError(t, err, "%s %s", model, info.Name)
				require.Equal(t, enginetest.JSONMember(t, string(want.AppendJSON(nil, rankd.FormatFlat)), "candidates"), enginetest.JSONMember(t, string(got.AppendJSON(nil, rankd.FormatFlat)), "candidates"))
			}
			s.cut()
			require.Eventually(t, func() bool {
				_, err := safe.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: user})
				return err == nil
			}, 10*time.Second, time.Millisecond, "it connects again")
		}
	}
}

// TestTLSOfLargeReplies reads more than a record, and more than a buffer, at once.
func TestTLSOfLargeReplies(t *testing.T) {
	redis, err := rankdtest.StartRedisWith(nil)
	require.NoError(t, err)
	defer redis.Close()
	fill := []string{"RPUSH", "rows"}
	for i := range 60_000 {
		fill = append(fill, fmt.Sprint(1_000_000+i))
	}
	enginetest.Store(t, redis.Addr(), fill)
	dir := t.TempDir()
	cert := filepath.Join(dir, "c.pem")
	c := servetest.WriteCertificate(t, cert, filepath.Join(dir, "k.pem"), 1)
	s := startTLS(t, redis.Addr(), &tls.Config{Certificates: []tls.Certificate{c.Certificate}})
	folder := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows", "limit": 60000}}`})
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Redis: s.url("tls_ca=" + cert), Model: model, Plans: folder})
		a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.NoError(t, err)
		require.Equal(t, 60_000, a.Len())
		assert.EqualValues(t, 1_059_999, a.Output(0).ID(59_999))
	}
}

// TestTLSThatFails: each error names the endpoint, and says the cause in words that a user
// knows.
func TestTLSThatFails(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	good := servetest.WriteCertificate(t, file("good.pem"), file("good.key"), 1)
	servetest.WriteCertificate(t, file("other.pem"), file("other.key"), 2)
	old := servetest.Issue(t, 3, time.Now().Add(-time.Minute))
	old.Write(t, file("old.pem"), file("old.key"))
	with := func(c servetest.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{c.Certificate}}
	}
	mutual := with(good)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	mutual.ClientCAs.AddCert(good.Leaf)
	silent := func(client, _ net.Conn) { _, _ = io.Copy(io.Discard, client) }
	for name, c := range map[string]struct {
		config  *tls.Config
		between func(client, redis net.Conn)
		query   string
		want    string // in the error; "": the connection works
	}{
		"all is well":                {with(good), nil, "tls_ca=good.pem", ""},
		"another name":               {with(good), nil, "tls_ca=good.pem&tls_server_name=rankd", ""},
		"an unknown authority":       {with(good), nil, "tls_ca=other.pem", "certificate signed by unknown authority"},
		"the system's authorities":   {with(good), nil, "", "certificate signed by unknown authority"},
		"an expired certificate":     {with(old), nil, "tls_ca=old.pem", "certificate has expired"},
		"a wrong name":               {with(good), nil, "tls_ca=good.pem&tls_server_name=redis.example.com", "certificate is valid for rankd, not redis.example.com"},
		"a plain server":             {nil, nil, "tls_ca=good.pem", "not speak TLS on this port"},
		"a certificate is required":  {mutual, nil, "tls_ca=good.pem", "certificate required"},
		"a certificate is there":     {mutual, nil, "tls_ca=good.pem&tls_cert=good.pem&tls_key=good.key", ""},
		"another's certificate":      {mutual, nil, "tls_ca=good.pem&tls_cert=other.pem&tls_key=other.key", "tls: "},
		"a handshake without an end": {nil, silent, "tls_ca=good.pem", "connect timeout"},
		"no answer to a handshake":   {nil, silent, "tls_ca=good.pem", "which it may not speak on this port"},
		"silence after a handshake":  {with(good), func(client, _ net.Conn) { silent(client, nil) }, "tls_ca=good.pem", "redis 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTLS(t, redis.Addr(), c.config)
			s.set(func() { s.between = c.between })
			query := strings.NewReplacer("=good", "="+dir+"/good", "=other", "="+dir+"/other", "=old", "="+dir+"/old").Replace(c.query)
			for _, model := range enginetest.Models {
				tables := enginetest.ResidentTables("connect_timeout_ms = 300\nrequest_timeout_ms = 300\n").FS()
				e := enginetest.Open(t, rankd.Options{Redis: s.url(query), Model: model, Registry: tables, Plans: enginetest.Plans(map[string]string{
					"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`,
				})})
				_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
				if c.want == "" {
					require.NoError(t, err, model)
					continue
				}
				require.ErrorContains(t, err, c.want, model)
				require.ErrorContains(t, err, "endpoint ep_0001")
				require.ErrorIs(t, err, rankd.ErrRedis)
			}
		})
	}
	for query, want := range map[string]string{
		"tls_ca=" + file("nothing.pem"):                                    "endpoint ep_0001: tls_ca " + file("nothing.pem") + ": no such file or directory",
		"tls_ca=" + file("good.key"):                                       "no certificate in PEM",
		"tls_cert=" + file("good.pem") + "&tls_key=" + file("other.key"):   "private key does not match public key",
		"tls_cert=" + file("good.pem") + "&tls_key=" + file("nothing.key"): "nothing.key",
	} {
		_, err := rankd.Open(rankd.Options{Redis: "rediss://127.0.0.1:1?" + query})
		require.ErrorContains(t, err, want)
	}
}

// TestTLSOfRenewedCertificates: each new connection reads authorities, certificate and key
// again.
func TestTLSOfRenewedCertificates(t *testing.T) {
	redis, err := rankdtest.StartRedis()
	require.NoError(t, err)
	defer redis.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	c := servetest.WriteCertificate(t, cert, key, 1)
	s := startTLS(t, redis.Addr(), &tls.Config{Certificates: []tls.Certificate{c.Certificate}})
	e := enginetest.Open(t, rankd.Options{Redis: s.url("tls_ca=" + cert + "&tls_cert=" + cert + "&tls_key=" + key)})
	ask := func() error {
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "complex_dag", UserID: 1})
		return err
	}
	require.NoError(t, ask())
	c = servetest.WriteCertificate(t, cert, key, 2)
	roots := x509.NewCertPool()
	roots.AddCert(c.Leaf)
	s.set(func() {
		s.config = &tls.Config{Certificates: []tls.Certificate{c.Certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	})
	require.NoError(t, ask(), "the connection stays")
	s.cut()
	require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, time.Millisecond)
}

// TestTLSOfARedisServer reaches a redis-server through its own TLS, with a client's certificate
// and a cache that hears of changes.
func TestTLSOfARedisServer(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	servetest.WriteCertificate(t, cert, key, 1)
	port := freePort(t)
	redis := testworld.StartRedis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	enginetest.Store(t, redis.Addr, []string{"RPUSH", "rows", "1", "2"})
	folder := enginetest.Plans(map[string]string{"p": `{"node_id": "out", "op": "candidates", "inputs": [], "params": {"endpoint": "ep_0001", "key": "rows"}}`})
	url := "rediss://localhost:" + port + "?tls_server_name=rankd&tls_ca=" + cert + "&tls_cert=" + cert + "&tls_key=" + key
	for _, model := range enginetest.Models {
		e := enginetest.Open(t, rankd.Options{Redis: url, Model: model, Plans: folder, Cache: registry.CacheBroadcast})
		rows := func() int {
			a, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
			require.NoError(t, err)
			return a.Len()
		}
		n := rows()
		if model == rankd.Reactor {
			require.Eventually(t, func() bool { rows(); return e.Metrics().Caches[0].Hits > 0 }, 10*time.Second, time.Millisecond, "the server tells of changes")
		}
		enginetest.Store(t, redis.Addr, []string{"RPUSH", "rows", "3"})
		require.Eventually(t, func() bool { return rows() == n+1 }, 10*time.Second, time.Millisecond)
	}
	e := enginetest.Open(t, rankd.Options{Redis: "rediss://127.0.0.1:" + port + "?tls_ca=" + cert, Plans: folder})
	require.Eventually(t, func() bool { // The server's reset may arrive before its alert.
		_, err := e.Rank(t.Context(), rankd.Request{Plan: "p", UserID: 1})
		require.Error(t, err)
		return strings.Contains(err.Error(), "certificate required")
	}, 10*time.Second, time.Millisecond)
}

// freePort returns a port of 127.0.0.1 that was free just now.
func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

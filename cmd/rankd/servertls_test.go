//go:build unix

package main

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/serve/servetest"
)

// TestServingOverTLS: both fronts speak TLS, and show a new certificate to new connections.
func TestServingOverTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	trusted := servetest.WriteCertificate(t, certFile, keyFile, 1)
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	check := func(trusted servetest.Certificate, serial int64) *redisConn {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted.Roots}}
		defer transport.CloseIdleConnections()
		reply, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://" + s.http + "/v1/plans")
		require.NoError(t, err)
		assert.Equal(t, serial, reply.TLS.PeerCertificates[0].SerialNumber.Int64())
		assert.Contains(t, read(t, reply).body, "complex_dag")
		conn, err := tls.Dial("tcp", s.resp, &tls.Config{RootCAs: trusted.Roots})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		assert.Equal(t, serial, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64())
		redis := newRedisConn(conn)
		assert.Contains(t, redis.mustDo(t, "RANK", "complex_dag", "1"), `"candidates"`)
		return redis
	}
	first := check(trusted, 1)
	trusted = servetest.WriteCertificate(t, certFile, keyFile, 2)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	s.log.awaitLine(t, 0, `"msg":"certificate changed"`)
	check(trusted, 2)
	assert.Equal(t, "PONG", first.mustDo(t, "PING"), "an open connection keeps its certificate")
	plain, err := dialRedis(s.resp)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.do("PING")
	assert.Error(t, err, "nothing in clear")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitOK, s.awaitEnd(t))
}

// TestAnExpiredCertificate: the log warns of it, at the start and when it comes later.
func TestAnExpiredCertificate(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servetest.Issue(t, 1, time.Now().Add(-time.Minute)).Write(t, certFile, keyFile)
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	const warning = `"level":"WARN","msg":"the certificate has expired`
	_, first := s.log.awaitLine(t, 0, warning)
	servetest.WriteCertificate(t, certFile, keyFile, 2)
	_, sound := s.log.awaitLine(t, first+1, `"msg":"certificate changed"`)
	servetest.Issue(t, 3, time.Now().Add(-time.Minute)).Write(t, certFile, keyFile)
	_, second := s.log.awaitLine(t, sound+1, warning)
	_, last := s.log.awaitLine(t, sound+1, `"msg":"certificate changed"`)
	assert.Equal(t, last+1, second, "the sound certificate has no warning")
}

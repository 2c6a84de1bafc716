//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeCertificate replaces the files of a certificate for 127.0.0.1 and its key. It returns who trusts it.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	return writeCertificateUntil(t, certFile, keyFile, serial, time.Now().Add(time.Hour))
}

// writeCertificateUntil is writeCertificate with an end.
func writeCertificateUntil(t *testing.T, certFile, keyFile string, serial int64, end time.Time) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: end.Add(-2 * time.Hour),
		NotAfter: end, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for path, block := range map[string]*pem.Block{keyFile: {Type: "PRIVATE KEY", Bytes: private}, certFile: {Type: "CERTIFICATE", Bytes: der}} {
		require.NoError(t, os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return trusted
}

// TestServingOverTLS: both fronts speak TLS, and show a new certificate to new connections.
func TestServingOverTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	trusted := writeCertificate(t, certFile, keyFile, 1)
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	check := func(trusted *x509.CertPool, serial int64) *redisConn {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
		defer transport.CloseIdleConnections()
		reply, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://" + s.http + "/v1/plans")
		require.NoError(t, err)
		assert.Equal(t, serial, reply.TLS.PeerCertificates[0].SerialNumber.Int64())
		assert.Contains(t, read(t, reply).body, "complex_dag")
		conn, err := tls.Dial("tcp", s.resp, &tls.Config{RootCAs: trusted})
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		assert.Equal(t, serial, conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64())
		redis := newRedisConn(conn)
		assert.Contains(t, redis.mustDo(t, "RANK", "complex_dag", "1"), `"candidates"`)
		return redis
	}
	first := check(trusted, 1)
	trusted = writeCertificate(t, certFile, keyFile, 2)
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
	writeCertificateUntil(t, certFile, keyFile, 1, time.Now().Add(-time.Minute))
	s := startServer(t, "--tls_cert", certFile, "--tls_key", keyFile, "--drain_delay_ms", "0")
	const warning = `"level":"WARN","msg":"the certificate has expired`
	_, first := s.log.awaitLine(t, 0, warning)
	writeCertificate(t, certFile, keyFile, 2)
	_, sound := s.log.awaitLine(t, first+1, `"msg":"certificate changed"`)
	writeCertificateUntil(t, certFile, keyFile, 3, time.Now().Add(-time.Minute))
	_, second := s.log.awaitLine(t, sound+1, warning)
	_, last := s.log.awaitLine(t, sound+1, `"msg":"certificate changed"`)
	assert.Equal(t, last+1, second, "the sound certificate has no warning")
}
